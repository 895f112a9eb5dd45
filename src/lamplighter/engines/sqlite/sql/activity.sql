-- tally, activity, standing: what happened by the minute, and what waits as a whole.

-- name: note
-- The next tally of a worker; one that is not above the last changes nothing.
-- in: worker, number, now
INSERT INTO tally (worker, number, at) VALUES (:worker, :number, :now)
ON CONFLICT (worker) DO UPDATE SET number = excluded.number, at = excluded.at
WHERE excluded.number > tally.number;

-- name: minute
-- in: minute
SELECT counts FROM activity WHERE minute = :minute;

-- name: write
-- in: minute, counts
INSERT INTO activity (minute, counts) VALUES (:minute, :counts)
ON CONFLICT (minute) DO UPDATE SET counts = excluded.counts;

-- name: forget_minutes
-- in: before, limit
DELETE FROM activity
WHERE minute IN (SELECT minute FROM activity WHERE minute < :before ORDER BY minute LIMIT :limit);

-- name: forget_workers
-- Index: tally_age.
-- in: before, limit
DELETE FROM tally
WHERE worker IN (SELECT worker FROM tally WHERE at < :before ORDER BY at LIMIT :limit);

-- name: minutes
-- in: since, until
SELECT minute, counts FROM activity WHERE minute BETWEEN :since AND :until ORDER BY minute;

-- name: held
-- Index: job_held.
-- in: limit
SELECT count(*) FROM (
    SELECT 1 FROM job INDEXED BY job_held WHERE state = 'waiting' AND hold IS NOT NULL LIMIT :limit
);

-- name: job
-- in: seq
SELECT id FROM job WHERE seq = :seq;

-- name: schedule
-- Index: schedule_awake.
SELECT min(wake) FROM schedule INDEXED BY schedule_awake WHERE wake IS NOT NULL AND hold IS NULL;
