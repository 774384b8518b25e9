-- What was put before an agent, and what came of it; evidence against a lesson.
ALTER TABLE memories ADD COLUMN recurrence_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN fix_args TEXT;
ALTER TABLE memories ADD COLUMN last_injected_at TEXT;

CREATE TABLE kevin_injections(
    id          TEXT PRIMARY KEY,
    memory_id   TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    hook        TEXT NOT NULL CHECK (hook IN ('pre_prompt', 'compacting')),
    tokens      INTEGER NOT NULL,
    injected_at TEXT NOT NULL DEFAULT (datetime('now')),
    outcome     TEXT NOT NULL DEFAULT 'unmeasured'
                CHECK (outcome IN ('unmeasured', 'effective', 'ineffective'))
);
CREATE INDEX idx_injections_fingerprint ON kevin_injections(fingerprint);
CREATE INDEX idx_injections_session ON kevin_injections(session_id);
CREATE INDEX idx_injections_outcome ON kevin_injections(outcome);

INSERT OR IGNORE INTO kevin_metrics(key) VALUES
    ('injections_total'), ('injections_effective'), ('injections_ineffective'), ('patterns_promoted_new');
INSERT OR IGNORE INTO kevin_settings(key, value) VALUES
    ('lesson_snippet_injection', '1'), ('deterministic_retrieval', '0');
