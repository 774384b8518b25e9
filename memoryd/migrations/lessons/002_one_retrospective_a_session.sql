-- A session that goes idle twice has one retrospective; of several kept so far the newest stays.
DELETE FROM retrospectives WHERE rowid NOT IN (SELECT max(rowid) FROM retrospectives GROUP BY session_id);
CREATE UNIQUE INDEX uq_retrospectives_session ON retrospectives(session_id);
CREATE INDEX idx_memories_expires ON memories(expires_at);
