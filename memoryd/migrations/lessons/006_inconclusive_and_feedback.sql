-- "It did not come back" is no effect: what was called effective so far was only that, and becomes
-- inconclusive. The counters are derived from the table anew, whatever they said. People's opinions.
CREATE TABLE kevin_injections_wider(
    id          TEXT PRIMARY KEY,
    memory_id   TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    hook        TEXT NOT NULL CHECK (hook IN ('pre_prompt', 'compacting')),
    tokens      INTEGER NOT NULL,
    injected_at TEXT NOT NULL DEFAULT (datetime('now')),
    outcome     TEXT NOT NULL DEFAULT 'unmeasured'
                CHECK (outcome IN ('unmeasured', 'effective', 'ineffective', 'inconclusive'))
);
INSERT INTO kevin_injections_wider(rowid, id, memory_id, fingerprint, session_id, hook, tokens,
                                   injected_at, outcome)
    SELECT rowid, id, memory_id, fingerprint, session_id, hook, tokens, injected_at,
           CASE outcome WHEN 'effective' THEN 'inconclusive' ELSE outcome END
    FROM kevin_injections;
DROP TABLE kevin_injections;
ALTER TABLE kevin_injections_wider RENAME TO kevin_injections;
CREATE INDEX idx_injections_fingerprint ON kevin_injections(fingerprint);
CREATE INDEX idx_injections_session ON kevin_injections(session_id);
CREATE INDEX idx_injections_outcome ON kevin_injections(outcome);

CREATE TABLE memory_feedback(
    id         TEXT PRIMARY KEY,
    memory_id  TEXT NOT NULL,
    verdict    TEXT NOT NULL CHECK (verdict IN ('useful', 'wrong', 'outdated', 'ignore')),
    session_id TEXT,
    note       TEXT,
    created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX idx_feedback_memory ON memory_feedback(memory_id);
CREATE INDEX idx_feedback_created ON memory_feedback(created_at);

ALTER TABLE memories ADD COLUMN feedback_positive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN feedback_negative INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN ignored INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN superseded_by TEXT;  -- no foreign key: a chain outlives its links
ALTER TABLE memories ADD COLUMN archived_at TEXT;
CREATE INDEX idx_memories_ignored ON memories(ignored);
CREATE INDEX idx_memories_archived ON memories(archived_at);

INSERT OR IGNORE INTO kevin_metrics(key) VALUES
    ('injections_inconclusive'), ('injections_blocked_seen'), ('injections_blocked_weak'),
    ('injections_blocked_recurrence'), ('injections_blocked_stale'), ('injections_blocked_ignored'),
    ('feedback_positive_total'), ('feedback_negative_total'), ('memories_archived');
INSERT OR IGNORE INTO kevin_settings(key, value) VALUES
    ('quality_gate_enabled', '1'), ('pre_prompt_budget_tokens', '900'), ('archive_after_days', '30');

INSERT OR REPLACE INTO kevin_metrics(key, value)
    WITH kinds(kind) AS (VALUES ('effective'), ('ineffective'), ('inconclusive'))
    SELECT 'injections_total', count(*) FROM kevin_injections
    UNION ALL
    SELECT 'injections_' || kind, count(i.id)
    FROM kinds LEFT JOIN kevin_injections i ON i.outcome = kind
    GROUP BY kind;
