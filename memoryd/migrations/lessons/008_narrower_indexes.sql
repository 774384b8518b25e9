-- What is written with every call is paid with every call: its indexes are as narrow as their use allows. One
-- that failed is found by what was called alone.
DROP INDEX call_fingerprint;
CREATE INDEX call_fingerprint ON call(fingerprint, at);
CREATE INDEX call_failed ON call(fingerprint, project) WHERE ok = 0;
DROP INDEX call_session;
CREATE INDEX call_session ON call(session, at);
DROP INDEX lesson_status;
CREATE INDEX lesson_stale ON lesson(staled_at) WHERE status = 'stale';

-- Where a lesson's words lie is a number now: a level, a trust and a project have one. What a reader may see is
-- a few of those numbers, found before any word is looked up. Words are written anew when the database is opened.
DROP TABLE posting;
DROP TABLE figure;
CREATE TABLE part(
    part INTEGER PRIMARY KEY, project TEXT NOT NULL, level INTEGER NOT NULL, untrusted INTEGER NOT NULL,
    lessons INTEGER NOT NULL, words INTEGER NOT NULL, UNIQUE (project, level, untrusted)
) STRICT;
CREATE TABLE posting(
    term TEXT NOT NULL, part INTEGER NOT NULL, lesson INTEGER NOT NULL, count INTEGER NOT NULL,
    words INTEGER NOT NULL, PRIMARY KEY (term, part, lesson)
) STRICT, WITHOUT ROWID;
UPDATE lesson SET words = 0;
