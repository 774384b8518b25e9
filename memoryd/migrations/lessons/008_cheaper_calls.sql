-- What is written with every call is paid with every call: its indexes are as narrow as their use allows. One
-- that failed is found by what was called alone. The postings of a lesson are found through its words, which
-- its text tells.
DROP INDEX call_fingerprint;
CREATE INDEX call_fingerprint ON call(fingerprint, at);
CREATE INDEX call_failed ON call(fingerprint, project) WHERE ok = 0;
DROP INDEX call_session;
CREATE INDEX call_session ON call(session, at);
DROP INDEX posting_lesson;
