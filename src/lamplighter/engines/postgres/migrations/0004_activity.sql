-- What workers did, minute by minute, for a day.
--
-- activity  one row per minute in which something was tallied; the counts are in the order of
--           `Tally.numbers`.
-- tally     the last tally of each worker, so that one that is repeated counts once.

CREATE TABLE activity (
    minute bigint PRIMARY KEY,
    counts bigint[] NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tally (
    worker text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX tally_age ON tally (at);
