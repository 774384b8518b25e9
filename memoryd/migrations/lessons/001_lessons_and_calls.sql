-- Lessons (called memories until step 7), the calls they come from, and what a session came to.

CREATE TABLE memories(
    id              TEXT PRIMARY KEY,
    type            TEXT NOT NULL CHECK (type IN ('error', 'pattern', 'decision', 'context')),
    content         TEXT NOT NULL,
    scope           TEXT NOT NULL DEFAULT 'project' CHECK (scope IN ('project', 'session')),
    relevance_score REAL DEFAULT 0.5,
    source_tool     TEXT,
    source_session  TEXT,
    metadata        TEXT,
    created_at      TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at      TEXT NOT NULL DEFAULT (datetime('now')),
    expires_at      TEXT
);
CREATE INDEX idx_memories_type ON memories(type);
CREATE INDEX idx_memories_scope ON memories(scope);
CREATE INDEX idx_memories_relevance ON memories(relevance_score DESC);
CREATE INDEX idx_memories_created ON memories(created_at);

CREATE VIRTUAL TABLE memories_fts USING fts5(
    content, content = 'memories', content_rowid = 'rowid', tokenize = 'unicode61 remove_diacritics 1'
);
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

CREATE TABLE tool_calls(
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL,
    ts           TEXT NOT NULL DEFAULT (datetime('now')),
    tool         TEXT NOT NULL,
    args_summary TEXT,
    success      INTEGER NOT NULL CHECK (success IN (0, 1)),
    duration_ms  INTEGER,
    agent        TEXT,
    error_type   TEXT,
    metadata     TEXT
);
CREATE INDEX idx_tool_calls_session ON tool_calls(session_id);
CREATE INDEX idx_tool_calls_tool ON tool_calls(tool);
CREATE INDEX idx_tool_calls_ts ON tool_calls(ts);
CREATE INDEX idx_tool_calls_success ON tool_calls(success);

CREATE TABLE retrospectives(
    id            TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL,
    ts            TEXT NOT NULL DEFAULT (datetime('now')),
    failure_count INTEGER NOT NULL DEFAULT 0,
    success_count INTEGER NOT NULL DEFAULT 0,
    lessons_count INTEGER NOT NULL DEFAULT 0,
    file_path     TEXT,
    metadata      TEXT
);
