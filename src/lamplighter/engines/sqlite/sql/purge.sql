-- purge: remove terminal jobs with all that is kept about them. Also used by prune.

-- name: job
-- in: seq
DELETE FROM job WHERE seq = :seq AND state IN ('succeeded', 'dead', 'cancelled', 'expired');

-- name: history
-- in: job_id
DELETE FROM attempt WHERE job_id = :job_id;

-- name: log
-- in: job_id
DELETE FROM log WHERE job_id = :job_id;

-- name: progress
-- in: job_id
DELETE FROM progress WHERE job_id = :job_id;
