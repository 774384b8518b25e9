-- Made by etc/whole.py from the steps in the folder beside this; change those, and run it.
CREATE TABLE schema_version(number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
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
CREATE UNIQUE INDEX lesson_error ON lesson(project, fingerprint, level, untrusted)
    WHERE type = 'error' AND origin = 'reflector' AND status <> 'superseded';
CREATE INDEX lesson_fingerprint ON lesson(fingerprint);
CREATE INDEX lesson_unwritten ON lesson(row) WHERE words = 0;
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
, call TEXT) STRICT;
CREATE INDEX fix_fingerprint ON fix(fingerprint, project);
CREATE INDEX fix_session ON fix(session);
CREATE TABLE injection(
    row INTEGER PRIMARY KEY, lesson TEXT NOT NULL, fingerprint TEXT NOT NULL, project TEXT NOT NULL,
    session TEXT NOT NULL, hook TEXT NOT NULL CHECK (hook IN ('pre_prompt', 'compacting', 'pull')),
    tokens INTEGER NOT NULL, at INTEGER NOT NULL,
    outcome TEXT NOT NULL DEFAULT 'unmeasured'
            CHECK (outcome IN ('unmeasured', 'effective', 'ineffective', 'inconclusive')),
    prevented INTEGER NOT NULL DEFAULT 0, final INTEGER NOT NULL DEFAULT 0,
    level INTEGER NOT NULL, untrusted INTEGER NOT NULL
) STRICT;
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
CREATE INDEX feedback_lesson ON feedback(lesson);
CREATE TABLE session(
    id TEXT PRIMARY KEY, project TEXT NOT NULL, last_at INTEGER NOT NULL, idle_at INTEGER,
    ended INTEGER NOT NULL DEFAULT 0, suggestion TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE retrospective(
    session TEXT PRIMARY KEY, at INTEGER NOT NULL, failures INTEGER NOT NULL, successes INTEGER NOT NULL,
    lessons INTEGER NOT NULL, file TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE metric(key TEXT PRIMARY KEY, value INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE setting(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX lesson_stale ON lesson(staled_at) WHERE status = 'stale';
CREATE TABLE part(
    part INTEGER PRIMARY KEY, project TEXT NOT NULL, level INTEGER NOT NULL, untrusted INTEGER NOT NULL,
    lessons INTEGER NOT NULL, words INTEGER NOT NULL, UNIQUE (project, level, untrusted)
) STRICT;
CREATE TABLE posting(
    term TEXT NOT NULL, part INTEGER NOT NULL, lesson INTEGER NOT NULL, count INTEGER NOT NULL,
    words INTEGER NOT NULL, PRIMARY KEY (term, part, lesson)
) STRICT, WITHOUT ROWID;
CREATE TABLE failed(
    log         TEXT NOT NULL,
    n           INTEGER NOT NULL,
    block       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    project     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    summary     TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at          INTEGER NOT NULL,
    error       TEXT,           -- the fingerprint of what it failed with, never to be mixed with the call's
    error_type  TEXT,
    level       INTEGER NOT NULL,
    untrusted   INTEGER NOT NULL,
    PRIMARY KEY (log, n, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE well(
    row         INTEGER PRIMARY KEY,
    log         TEXT NOT NULL,
    n           INTEGER NOT NULL,   -- of the first call
    last        INTEGER NOT NULL,   -- and of the last
    session     TEXT NOT NULL,
    project     TEXT NOT NULL,
    at          INTEGER NOT NULL,   -- of the earliest
    until       INTEGER NOT NULL,   -- and of the latest
    level       INTEGER NOT NULL,
    untrusted   INTEGER NOT NULL,
    prints      TEXT NOT NULL,
    calls       TEXT NOT NULL
) STRICT;
CREATE INDEX failed_session ON failed(session, at);
CREATE INDEX failed_fingerprint ON failed(fingerprint, project);
CREATE INDEX failed_error ON failed(error, at);
CREATE INDEX well_session ON well(session, at);
CREATE INDEX well_project ON well(project, at, log);
CREATE INDEX well_log ON well(log, last);
CREATE INDEX session_awake ON session(last_at) WHERE idle_at IS NULL OR idle_at < last_at;
CREATE VIEW call(log, n, block, session, project, tool, summary, fingerprint, ok, at, error, error_type, level,
                 untrusted) AS
    SELECT log, n, block, session, project, tool, summary, fingerprint, 0, at, error, error_type, level, untrusted
    FROM failed
    UNION ALL
    SELECT log, c.value ->> 0, c.value ->> 1, session, project, c.value ->> 3, c.value ->> 4, c.value ->> 5, 1,
           c.value ->> 2, NULL, NULL, level, untrusted
    FROM well, json_each(well.calls) AS c;
CREATE TRIGGER call_put INSTEAD OF INSERT ON call BEGIN
    SELECT raise(ABORT, 'the call is there')
        WHERE EXISTS (SELECT 1 FROM failed WHERE log = new.log AND n = new.n AND block = new.block)
        OR EXISTS (SELECT 1 FROM well, json_each(calls) AS c WHERE log = new.log AND last >= new.n
                   AND well.n <= new.n AND c.value ->> 0 = new.n AND c.value ->> 1 = new.block);
    INSERT INTO failed SELECT new.log, new.n, new.block, new.session, new.project, new.tool, new.summary,
        new.fingerprint, new.at, new.error, new.error_type, new.level, new.untrusted WHERE NOT new.ok;
    INSERT INTO well(log, n, last, session, project, at, until, level, untrusted, prints, calls)
        SELECT new.log, new.n, new.n, new.session, new.project, new.at, new.at, new.level, new.untrusted,
        new.fingerprint,
        json_array(json_array(new.n, new.block, new.at, new.tool, new.summary, new.fingerprint)) WHERE new.ok;
END;
CREATE TRIGGER call_gone INSTEAD OF DELETE ON call BEGIN
    DELETE FROM failed WHERE NOT old.ok AND log = old.log AND n = old.n AND block = old.block;
    UPDATE well SET (at, until, calls) = (
            SELECT coalesce(min(c.value ->> 2), at), coalesce(max(c.value ->> 2), until),
                   json_group_array(json(c.value))
            FROM json_each(calls) AS c WHERE NOT (c.value ->> 0 = old.n AND c.value ->> 1 = old.block))
        WHERE old.ok AND log = old.log AND last >= old.n AND n <= old.n;
    DELETE FROM well WHERE old.ok AND log = old.log AND last >= old.n AND n <= old.n AND calls = '[]';
END;
CREATE TRIGGER call_changed INSTEAD OF UPDATE ON call BEGIN
    DELETE FROM call WHERE log = old.log AND n = old.n AND block = old.block;
    INSERT INTO call VALUES (new.log, new.n, new.block, new.session, new.project, new.tool, new.summary,
        new.fingerprint, new.ok, new.at, new.error, new.error_type, new.level, new.untrusted);
END;
INSERT INTO schema_version VALUES
    (1, 'lessons_and_calls'),
    (2, 'one_retrospective_a_session'),
    (3, 'projects_and_fingerprints'),
    (4, 'evidence_and_status'),
    (5, 'injections'),
    (6, 'inconclusive_and_feedback'),
    (7, 'labels_and_milliseconds'),
    (8, 'narrower_indexes'),
    (9, 'whose_fix'),
    (10, 'calls_that_went_well');
INSERT INTO metric VALUES
    ('causal_links', 0),
    ('duplicate_suppressions', 0),
    ('feedback_negative_total', 0),
    ('feedback_positive_total', 0),
    ('injections_blocked_ignored', 0),
    ('injections_blocked_recurrence', 0),
    ('injections_blocked_seen', 0),
    ('injections_blocked_stale', 0),
    ('injections_blocked_weak', 0),
    ('injections_effective', 0),
    ('injections_inconclusive', 0),
    ('injections_ineffective', 0),
    ('injections_total', 0),
    ('memories_archived', 0),
    ('memories_superseded', 0),
    ('patterns_causal', 0),
    ('patterns_mined', 0),
    ('patterns_promoted_new', 0),
    ('reflections_throttled', 0),
    ('tokens_injected_compacting', 0),
    ('tokens_injected_pre_prompt', 0),
    ('tool_calls_deduped', 0);
INSERT INTO setting VALUES
    ('archive_after_days', '30'),
    ('cross_project_enabled', '0'),
    ('deterministic_retrieval', '0'),
    ('lesson_snippet_injection', '1'),
    ('llm_reflection_enabled', '0'),
    ('patternminer_enabled', '0'),
    ('pre_prompt_budget_tokens', '900'),
    ('quality_gate_enabled', '1'),
    ('tool_calls_dedup_enabled', '0');
PRAGMA user_version = 10;
