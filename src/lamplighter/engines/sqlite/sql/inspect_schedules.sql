-- Reads of schedules and their runs. Nothing here changes anything.

-- name: schedule
-- Index: schedule_id.
-- in: id
SELECT id, spec, tenant, type, version, cursor, due, created, changed, fired, skipped, failures,
       last_due, last_job, hold, backfill, zones
FROM schedule
WHERE id = :id;

-- name: schedules
-- A stretch of schedules from a name on, or after it. Index: schedule_id.
-- in: name, after, limit
SELECT id, spec, tenant, type, version, cursor, due, created, changed, fired, skipped, failures,
       last_due, last_job, hold, backfill, zones
FROM schedule INDEXED BY schedule_id
WHERE id >= :name AND (id > :name OR NOT :after)
ORDER BY id
LIMIT :limit;

-- name: number
-- in: id
SELECT number FROM schedule WHERE id = :id;

-- name: runs
-- Index: the key of run; job_id, one look a run.
-- in: schedule, before, limit
SELECT run.due, run.kind, run.state, run.at, run.job_id, run.reason, run.first, run.count,
       run.finished, job.claimed
FROM run
LEFT JOIN job ON job.id = run.job_id
WHERE run.schedule = :schedule AND run.due < :before
ORDER BY run.due DESC
LIMIT :limit;
