-- What attempts say while they run: pieces of their logs, and how far they have come.
--
-- log       one row per piece of an attempt's log; the attempt is named by its lease number.
-- progress  how far a job's attempt said it had come; one of an older lease says nothing, so that
--           a claim need not clear it.

-- Pieces are up to 16 KiB: with a rowid the key's index stays narrow and pieces are appended.
CREATE TABLE log (
    job_id TEXT NOT NULL,
    lease INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (job_id, lease, number)
);

-- Not a column of job: a row whose length changes is written anew with all its arguments.
CREATE TABLE progress (
    job_id TEXT PRIMARY KEY,
    lease INTEGER NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Attempts of the first shape do not know their nonce.
ALTER TABLE attempt ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
