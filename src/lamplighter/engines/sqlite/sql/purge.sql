-- purge: remove terminal jobs with their history. Also used by prune.

-- name: job
-- in: seq
DELETE FROM job WHERE seq = :seq AND state IN ('succeeded', 'dead', 'cancelled', 'expired');

-- name: history
-- in: job_id
DELETE FROM attempt WHERE job_id = :job_id;
