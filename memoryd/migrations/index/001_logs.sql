-- What holds for the whole index, and the logs it was read from with how far each is read.
-- Everything here is derived: an index of another version is rebuilt, never altered.

-- generation, epoch, classes (JSON, low to high), max_level, rules (their fingerprint), created (ms);
-- residue, purge (bits a class): deleted words are still in the file, and are being taken out of it
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE log(
    id          INTEGER PRIMARY KEY,
    key         INTEGER NOT NULL UNIQUE,       -- ids.log_key(source, root, log)
    source      TEXT    NOT NULL,              -- the adapter's id
    root        TEXT    NOT NULL,              -- the source's folder
    log         TEXT    NOT NULL,              -- the path below it, with "/"
    session     TEXT    NOT NULL,              -- as a record tells it, else the file's stem
    project     TEXT,
    agent       TEXT,
    told        INTEGER NOT NULL DEFAULT 0,    -- 1: the session was told by a record
    state       TEXT    NOT NULL DEFAULT 'live'
                CHECK (state IN ('live', 'gone', 'excluded', 'expired')),

    -- Progress. It commits with the rows that it counts.
    records     INTEGER NOT NULL DEFAULT 0,    -- the number of the next record
    offset      INTEGER NOT NULL DEFAULT 0,    -- bytes read
    discarding  INTEGER NOT NULL DEFAULT 0,    -- 1: inside a line that is too long to read
    begun       INTEGER NOT NULL DEFAULT 0,    -- 1: a record has named itself
    level       INTEGER NOT NULL,              -- the label after the last record read
    untrusted   INTEGER NOT NULL,
    peak_level  INTEGER NOT NULL,              -- the highest label it ever had, rewritten or not
    peak_untrusted  INTEGER NOT NULL,
    floor_level INTEGER NOT NULL,              -- the label its first record started from
    floor_untrusted INTEGER NOT NULL,

    -- Identity: is the file at that path still the one that was read so far?
    dev         INTEGER NOT NULL DEFAULT 0,
    ino         INTEGER NOT NULL DEFAULT 0,
    size        INTEGER NOT NULL DEFAULT 0,
    mtime_ns    INTEGER NOT NULL DEFAULT 0,
    head        BLOB    NOT NULL DEFAULT x'',  -- hash of the first min(1024, offset) bytes
    tail        BLOB    NOT NULL DEFAULT x'',  -- hash of the last min(256, offset) bytes read

    -- Counts, for the owner's status only.
    indexed     INTEGER NOT NULL DEFAULT 0,
    left_out    INTEGER NOT NULL DEFAULT 0,    -- rows above max_class
    unreadable  INTEGER NOT NULL DEFAULT 0,
    why         TEXT,                          -- what first raised it above max_class
    first_ts    INTEGER,                       -- ms, least and greatest time told by a record
    last_ts     INTEGER,
    forgot      INTEGER NOT NULL DEFAULT 0     -- names the entries of overrides.jsonl under which it was read
) STRICT;

CREATE INDEX log_session ON log(session);

-- Calls without a result yet: the label that the result will have, and where the call stands.
CREATE TABLE call(
    log INTEGER NOT NULL, call BLOB NOT NULL, level INTEGER NOT NULL, untrusted INTEGER NOT NULL,
    n INTEGER NOT NULL, block INTEGER NOT NULL, tool TEXT NOT NULL,
    PRIMARY KEY (log, call)
) STRICT, WITHOUT ROWID;

-- What raised each log's label and which calls were answered: one row a turn, MessagePack.
CREATE TABLE trail(
    log INTEGER NOT NULL, first_n INTEGER NOT NULL, events BLOB NOT NULL,
    PRIMARY KEY (log, first_n)
) STRICT;                                      -- with rowid: blobs over a quarter of a page stay on it
