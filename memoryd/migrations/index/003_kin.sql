-- Logs that refer to each other (lineage), and what was decided against them (overrides).

ALTER TABLE log ADD COLUMN kin BLOB NOT NULL DEFAULT x'';      -- what it tells of others: kinfolk.Told
ALTER TABLE log ADD COLUMN heard BLOB NOT NULL DEFAULT x'';    -- what others say of its rows: lineage.Heard
ALTER TABLE log ADD COLUMN decided BLOB NOT NULL DEFAULT x'';  -- hash of the overrides its rows rest on

-- Names of records, eight bytes each from record first_n on, where a log gives any; one row a turn.
-- Where it is a fork: the names of the records that its own say they copy, else 0.
CREATE TABLE anchor(
    log INTEGER NOT NULL, first_n INTEGER NOT NULL, names BLOB NOT NULL, origins BLOB NOT NULL,
    PRIMARY KEY (log, first_n)
) STRICT;
