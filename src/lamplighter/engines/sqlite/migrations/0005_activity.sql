-- What workers did, minute by minute, for a day.
--
-- activity  one row per minute in which something was tallied; the counts are a JSON array in the
--           order of `Tally.numbers`.
-- tally     the last tally of each worker, so that one that is repeated counts once.

CREATE TABLE activity (
    minute INTEGER PRIMARY KEY,
    counts TEXT NOT NULL
);

CREATE TABLE tally (
    worker TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tally_age ON tally (at);
