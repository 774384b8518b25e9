-- What a lesson is worth and whether it still holds; two more types and two more origins, which CHECKs
-- cannot be widened for in place: the table is rebuilt, rowids kept, since the words are found by them.
DROP TRIGGER memories_ai;
DROP TRIGGER memories_ad;
DROP TRIGGER memories_au;

CREATE TABLE memories_wider(
    id               TEXT PRIMARY KEY,
    type             TEXT NOT NULL
                     CHECK (type IN ('error', 'pattern', 'decision', 'context', 'rule', 'solution')),
    content          TEXT NOT NULL,
    scope            TEXT NOT NULL DEFAULT 'project' CHECK (scope IN ('project', 'session')),
    relevance_score  REAL DEFAULT 0.5,
    source_tool      TEXT,
    source_session   TEXT,
    metadata         TEXT,
    created_at       TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at       TEXT NOT NULL DEFAULT (datetime('now')),
    expires_at       TEXT,
    project_id       TEXT,
    fingerprint      TEXT,
    origin           TEXT NOT NULL DEFAULT 'agent' CHECK (origin IN
                     ('reflector', 'agent', 'pattern', 'retrospective', 'causal', 'imported')),
    evidence_count   INTEGER NOT NULL DEFAULT 0,
    last_verified_at TEXT,
    status           TEXT NOT NULL DEFAULT 'active'
                     CHECK (status IN ('active', 'superseded', 'stale', 'archived'))
);
INSERT INTO memories_wider(rowid, id, type, content, scope, relevance_score, source_tool, source_session,
                           metadata, created_at, updated_at, expires_at, project_id, fingerprint, origin)
    SELECT rowid, id, type, content, scope, relevance_score, source_tool, source_session,
           metadata, created_at, updated_at, expires_at, project_id, fingerprint,
           coalesce(nullif(origin, ''), 'agent')
    FROM memories;
DROP TABLE memories;
ALTER TABLE memories_wider RENAME TO memories;

CREATE INDEX idx_memories_type ON memories(type);
CREATE INDEX idx_memories_scope ON memories(scope);
CREATE INDEX idx_memories_relevance ON memories(relevance_score DESC);
CREATE INDEX idx_memories_created ON memories(created_at);
CREATE INDEX idx_memories_expires ON memories(expires_at);
CREATE INDEX idx_memories_fingerprint ON memories(fingerprint) WHERE fingerprint IS NOT NULL;
CREATE UNIQUE INDEX uq_memories_error_fp ON memories(project_id, fingerprint)
    WHERE type = 'error' AND fingerprint IS NOT NULL AND origin = 'reflector';

CREATE TRIGGER memories_ai AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts(rowid, content) VALUES (new.rowid, new.content);
END;
CREATE TRIGGER memories_ad AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.rowid, old.content);
END;
CREATE TRIGGER memories_au AFTER UPDATE OF content ON memories BEGIN
    INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.rowid, old.content);
    INSERT INTO memories_fts(rowid, content) VALUES (new.rowid, new.content);
END;

ALTER TABLE tool_calls ADD COLUMN fix_for_fingerprint TEXT;
ALTER TABLE tool_calls ADD COLUMN error_fingerprint TEXT;
CREATE INDEX idx_tool_calls_fix ON tool_calls(fix_for_fingerprint) WHERE fix_for_fingerprint IS NOT NULL;
CREATE INDEX idx_tool_calls_error ON tool_calls(error_fingerprint) WHERE error_fingerprint IS NOT NULL;

INSERT OR IGNORE INTO kevin_metrics(key) VALUES
    ('patterns_causal'), ('causal_links'), ('memories_superseded');
INSERT OR IGNORE INTO kevin_settings(key, value) VALUES
    ('llm_reflection_enabled', '0'), ('cross_project_enabled', '0');
