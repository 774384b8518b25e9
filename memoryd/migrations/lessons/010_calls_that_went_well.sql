-- Nearly every call goes well, and then it is looked at when another one failed before or after it, or not at all.
-- So it is no row under three keys any more: those of one batch of a log lie together, found by their session, by
-- their log, or by their project and time. `calls` holds arrays of n, block, at, tool, summary and fingerprint;
-- `prints` their fingerprints alone, to be searched before anything is taken apart. A batch spans a day at most.
-- `call` shows all calls as before; what is written through it goes to where it belongs.
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
INSERT INTO failed SELECT log, n, block, session, project, tool, summary, fingerprint, at, error, error_type,
    level, untrusted FROM call WHERE ok = 0;

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
INSERT INTO well(log, n, last, session, project, at, until, level, untrusted, prints, calls)
    SELECT log, min(n), max(n), session, project, min(at), max(at), level, untrusted,
           group_concat(fingerprint, ' '),
           json_group_array(json_array(n, block, at, tool, summary, fingerprint))
    FROM (SELECT * FROM call WHERE ok = 1 ORDER BY log, n, block)
    GROUP BY log, session, project, level, untrusted, at / 86400000, n / 256;
DROP TABLE call;

CREATE INDEX failed_session ON failed(session, at);
CREATE INDEX failed_fingerprint ON failed(fingerprint, project);
CREATE INDEX failed_error ON failed(error, at);
CREATE INDEX well_session ON well(session, at);
CREATE INDEX well_project ON well(project, at, log);
CREATE INDEX well_log ON well(log, last);
-- Which sessions have not come to rest is asked after every batch.
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
