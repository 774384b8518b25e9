-- Whose lesson it is, what makes two failures the same, where a lesson came from; counters and settings.
ALTER TABLE memories ADD COLUMN project_id TEXT;
ALTER TABLE memories ADD COLUMN fingerprint TEXT;
ALTER TABLE memories ADD COLUMN origin TEXT NOT NULL DEFAULT 'agent'
    CHECK (origin IN ('reflector', 'agent', 'pattern', 'retrospective'));
ALTER TABLE tool_calls ADD COLUMN project_id TEXT;
ALTER TABLE tool_calls ADD COLUMN fingerprint TEXT;

CREATE INDEX idx_memories_fingerprint ON memories(fingerprint) WHERE fingerprint IS NOT NULL;
CREATE UNIQUE INDEX uq_memories_error_fp ON memories(project_id, fingerprint)
    WHERE type = 'error' AND fingerprint IS NOT NULL AND origin = 'reflector';

CREATE TABLE kevin_metrics(
    key        TEXT PRIMARY KEY,
    value      INTEGER NOT NULL DEFAULT 0,
    updated_at TEXT NOT NULL DEFAULT (datetime('now'))
);
INSERT OR IGNORE INTO kevin_metrics(key) VALUES
    ('tokens_injected_pre_prompt'), ('tokens_injected_compacting'), ('reflections_throttled'),
    ('duplicate_suppressions'), ('tool_calls_deduped'), ('patterns_mined');

CREATE TABLE kevin_settings(key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT OR IGNORE INTO kevin_settings(key, value) VALUES
    ('patternminer_enabled', '0'), ('tool_calls_dedup_enabled', '0');
