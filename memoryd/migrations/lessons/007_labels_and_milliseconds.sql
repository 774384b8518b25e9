-- From here on the tables are memoryd's own: every row has a label, times are milliseconds since 1970 UTC,
-- what was parsed out of prose before is a column, and words are found through postings kept apart by label
-- and project, so that what a reader may not see moves no score of what it may. What an older database held
-- comes over at the highest label, until its owner says otherwise.
CREATE TABLE lesson(
    row              INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    type             TEXT NOT NULL
                     CHECK (type IN ('error', 'pattern', 'decision', 'context', 'rule', 'solution')),
    content          TEXT NOT NULL,
    scope            TEXT NOT NULL DEFAULT 'project' CHECK (scope IN ('project', 'session')),
    project          TEXT NOT NULL DEFAULT '',
    fingerprint      TEXT NOT NULL,
    origin           TEXT NOT NULL CHECK (origin IN
                     ('reflector', 'agent', 'pattern', 'retrospective', 'causal', 'imported')),
    status           TEXT NOT NULL DEFAULT 'active'
                     CHECK (status IN ('active', 'superseded', 'stale', 'archived')),
    level            INTEGER NOT NULL,
    untrusted        INTEGER NOT NULL CHECK (untrusted IN (0, 1)),
    relevance        REAL NOT NULL DEFAULT 0.5,
    tool             TEXT,
    session          TEXT,
    call             TEXT,      -- the failed call that taught it: log, record and block
    call_fingerprint TEXT,      -- the same tool with the same arguments
    error_type       TEXT,
    first_line       TEXT,
    code             TEXT,
    hint             TEXT,
    suggestion       TEXT,
    fix_args         TEXT,
    metadata         TEXT,
    evidence         INTEGER NOT NULL DEFAULT 0,
    recurrence       INTEGER NOT NULL DEFAULT 0,
    forgiven         INTEGER NOT NULL DEFAULT 0,  -- of recurrence, when it was last revived
    useful           INTEGER NOT NULL DEFAULT 0,
    against          INTEGER NOT NULL DEFAULT 0,
    ignored          INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    verified_at      INTEGER,
    injected_at      INTEGER,
    staled_at        INTEGER,
    staled_session   TEXT,
    archived_at      INTEGER,
    superseded_by    TEXT,      -- no foreign key: a chain outlives its links
    words            INTEGER NOT NULL DEFAULT 0   -- 0: its postings are not written yet
) STRICT;

INSERT INTO lesson(id, type, content, scope, project, fingerprint, origin, status, level, untrusted, relevance,
                   tool, session, metadata, code, hint, fix_args, evidence, recurrence, useful, against, ignored,
                   created_at, updated_at, expires_at, verified_at, injected_at, staled_at, archived_at,
                   superseded_by, call)
    SELECT id, type, content, scope, coalesce(project_id, ''), coalesce(fingerprint, 'id:' || id), origin, status,
           7, 1, coalesce(relevance_score, 0.5), source_tool, source_session, metadata,
           CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.dispatch.code') END,
           CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.dispatch.hint') END,
           fix_args, evidence_count, recurrence_count, feedback_positive,
           (SELECT count(*) FROM memory_feedback f
            WHERE f.memory_id = memories.id AND f.verdict IN ('wrong', 'outdated')),
           ignored,
           1000 * coalesce(unixepoch(created_at), 0), 1000 * coalesce(unixepoch(updated_at), 0),
           1000 * unixepoch(expires_at), 1000 * unixepoch(last_verified_at), 1000 * unixepoch(last_injected_at),
           CASE status WHEN 'stale' THEN 1000 * unixepoch(updated_at) END, 1000 * unixepoch(archived_at),
           superseded_by,
           CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.origin_call_id') END
    FROM memories ORDER BY memories.rowid;
-- Rows that were one lesson all along (no project, the same error): the oldest stays active.
UPDATE lesson SET status = 'superseded', superseded_by = (
        SELECT id FROM lesson o WHERE o.type = 'error' AND o.origin = 'reflector' AND o.project = lesson.project
        AND o.fingerprint = lesson.fingerprint ORDER BY o.row LIMIT 1)
    WHERE type = 'error' AND origin = 'reflector' AND row > (
        SELECT min(row) FROM lesson o WHERE o.type = 'error' AND o.origin = 'reflector'
        AND o.project = lesson.project AND o.fingerprint = lesson.fingerprint);
CREATE UNIQUE INDEX lesson_error ON lesson(project, fingerprint, level, untrusted)
    WHERE type = 'error' AND origin = 'reflector' AND status <> 'superseded';
CREATE INDEX lesson_fingerprint ON lesson(fingerprint);
CREATE INDEX lesson_status ON lesson(status, type);
CREATE INDEX lesson_unwritten ON lesson(row) WHERE words = 0;

CREATE TABLE call(
    log         TEXT NOT NULL,
    n           INTEGER NOT NULL,
    block       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    project     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    summary     TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    ok          INTEGER NOT NULL CHECK (ok IN (0, 1)),
    at          INTEGER NOT NULL,
    error       TEXT,           -- the fingerprint of what it failed with, never to be mixed with the call's
    error_type  TEXT,
    level       INTEGER NOT NULL,
    untrusted   INTEGER NOT NULL,
    PRIMARY KEY (log, n, block)
) STRICT, WITHOUT ROWID;
INSERT INTO call SELECT 'kevin', row_number() OVER (ORDER BY rowid), 0, session_id, coalesce(project_id, ''), tool,
           coalesce(args_summary, ''), coalesce(fingerprint, id), success, 1000 * coalesce(unixepoch(ts), 0),
           CASE success WHEN 0 THEN coalesce(error_fingerprint, fingerprint) END, error_type, 7, 1
    FROM tool_calls;
CREATE INDEX call_session ON call(session, at, n);
CREATE INDEX call_fingerprint ON call(fingerprint, project, at);
CREATE INDEX call_error ON call(error, at) WHERE ok = 0;

CREATE TABLE charge(            -- failing calls held against a lesson, each once
    lesson TEXT NOT NULL, log TEXT NOT NULL, n INTEGER NOT NULL, block INTEGER NOT NULL,
    PRIMARY KEY (lesson, log, n, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE waiting(           -- calls that have no result yet
    log TEXT NOT NULL, call TEXT NOT NULL, n INTEGER NOT NULL, block INTEGER NOT NULL, tool TEXT NOT NULL,
    summary TEXT NOT NULL, fingerprint TEXT NOT NULL, at INTEGER, level INTEGER NOT NULL, untrusted INTEGER NOT NULL,
    PRIMARY KEY (log, call)
) STRICT, WITHOUT ROWID;
CREATE TABLE progress(log TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE fix(
    row INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, project TEXT NOT NULL, session TEXT NOT NULL,
    at INTEGER NOT NULL, args TEXT NOT NULL, level INTEGER NOT NULL, untrusted INTEGER NOT NULL
) STRICT;
CREATE INDEX fix_fingerprint ON fix(fingerprint, project);
CREATE INDEX fix_session ON fix(session);
INSERT INTO fix(fingerprint, project, session, at, args, level, untrusted)
    SELECT fix_for_fingerprint, coalesce(project_id, ''), session_id, 1000 * coalesce(unixepoch(ts), 0),
           tool || ' ' || coalesce(args_summary, ''), 7, 1
    FROM tool_calls WHERE fix_for_fingerprint IS NOT NULL;

CREATE TABLE injection(
    row INTEGER PRIMARY KEY, lesson TEXT NOT NULL, fingerprint TEXT NOT NULL, project TEXT NOT NULL,
    session TEXT NOT NULL, hook TEXT NOT NULL CHECK (hook IN ('pre_prompt', 'compacting', 'pull')),
    tokens INTEGER NOT NULL, at INTEGER NOT NULL,
    outcome TEXT NOT NULL DEFAULT 'unmeasured'
            CHECK (outcome IN ('unmeasured', 'effective', 'ineffective', 'inconclusive')),
    prevented INTEGER NOT NULL DEFAULT 0, final INTEGER NOT NULL DEFAULT 0,
    level INTEGER NOT NULL, untrusted INTEGER NOT NULL
) STRICT;
INSERT INTO injection(lesson, fingerprint, project, session, hook, tokens, at, outcome, final, level, untrusted)
    SELECT memory_id, fingerprint, coalesce((SELECT project_id FROM memories m WHERE m.id = memory_id), ''),
           session_id, hook, tokens, 1000 * coalesce(unixepoch(injected_at), 0), outcome, 1, 7, 1
    FROM kevin_injections ORDER BY kevin_injections.rowid;
CREATE INDEX injection_session ON injection(session);
CREATE INDEX injection_lesson ON injection(lesson);

CREATE TABLE refusal(
    lesson TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (lesson, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE feedback(
    row INTEGER PRIMARY KEY, lesson TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('useful', 'wrong', 'outdated', 'ignore')),
    session TEXT, note TEXT, at INTEGER NOT NULL
) STRICT;
INSERT INTO feedback(lesson, verdict, session, note, at)
    SELECT memory_id, verdict, session_id, note, 1000 * coalesce(unixepoch(created_at), 0)
    FROM memory_feedback ORDER BY memory_feedback.rowid;
CREATE INDEX feedback_lesson ON feedback(lesson);

CREATE TABLE session(
    id TEXT PRIMARY KEY, project TEXT NOT NULL, last_at INTEGER NOT NULL, idle_at INTEGER,
    ended INTEGER NOT NULL DEFAULT 0, suggestion TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE retrospective(
    session TEXT PRIMARY KEY, at INTEGER NOT NULL, failures INTEGER NOT NULL, successes INTEGER NOT NULL,
    lessons INTEGER NOT NULL, file TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO retrospective SELECT session_id, 1000 * coalesce(unixepoch(ts), 0), failure_count, success_count,
    lessons_count, file_path FROM retrospectives;

CREATE TABLE metric(key TEXT PRIMARY KEY, value INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO metric SELECT key, value FROM kevin_metrics;
CREATE TABLE setting(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO setting SELECT key, value FROM kevin_settings;

CREATE TABLE posting(
    term TEXT NOT NULL, project TEXT NOT NULL, level INTEGER NOT NULL, untrusted INTEGER NOT NULL,
    lesson INTEGER NOT NULL, count INTEGER NOT NULL, words INTEGER NOT NULL,
    PRIMARY KEY (term, project, level, untrusted, lesson)
) STRICT, WITHOUT ROWID;
CREATE INDEX posting_lesson ON posting(lesson);
CREATE TABLE figure(
    level INTEGER NOT NULL, untrusted INTEGER NOT NULL, project TEXT NOT NULL,
    lessons INTEGER NOT NULL, words INTEGER NOT NULL, PRIMARY KEY (level, untrusted, project)
) STRICT, WITHOUT ROWID;

DROP TRIGGER memories_ai;
DROP TRIGGER memories_ad;
DROP TRIGGER memories_au;
DROP TABLE memories_fts;
DROP TABLE memories;
DROP TABLE tool_calls;
DROP TABLE retrospectives;
DROP TABLE kevin_injections;
DROP TABLE memory_feedback;
DROP TABLE kevin_metrics;
DROP TABLE kevin_settings;
