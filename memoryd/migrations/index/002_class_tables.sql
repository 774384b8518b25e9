-- Run once a class, {c} from 0. A reader's query touches only the tables up to its clearance, so that
-- scores, order, counts and timing are functions of what it may see.

-- Where each row came from. Ids are given in reading order, one counter over all classes.
CREATE TABLE row_{c}(
    id        INTEGER PRIMARY KEY,
    log       INTEGER NOT NULL,
    n         INTEGER NOT NULL,                -- record number in its log
    block     INTEGER NOT NULL,                -- content block in its record
    kind      INTEGER NOT NULL,                -- records.Kind
    untrusted INTEGER NOT NULL,
    ts        INTEGER,                         -- ms since 1970 UTC
    tool      TEXT,
    dl        INTEGER NOT NULL                 -- length in tokens
) STRICT;
CREATE INDEX row_{c}_place ON row_{c}(log, n, block);

-- The text under the same id, and pairs of letters of what is written without spaces in it (mostly NULL).
-- N and the total lengths stand in ft_{c}_data, id 1 (varints).
CREATE VIRTUAL TABLE ft_{c} USING fts5(
    text, grams, tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO ft_{c}(ft_{c}, rank) VALUES ('secure-delete', 1);

-- Document frequencies, word by word.
CREATE VIRTUAL TABLE vocab_{c} USING fts5vocab(ft_{c}, row);
