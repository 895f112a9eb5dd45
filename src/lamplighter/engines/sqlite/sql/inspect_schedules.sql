-- Reads of schedules and their runs. Nothing here changes anything.

-- name: schedule
-- Index: schedule_id.
-- in: tenant, id
SELECT @schedule.columns@
FROM schedule
WHERE tenant = :tenant AND id = :id;

-- name: schedules
-- A stretch of schedules from a tenant and an id on, or after it. Index: schedule_id.
-- in: tenant, id, after, limit
SELECT @schedule.columns@
FROM schedule INDEXED BY schedule_id
WHERE (tenant, id) >= (:tenant, :id) AND ((tenant, id) <> (:tenant, :id) OR NOT :after)
ORDER BY tenant, id
LIMIT :limit;

-- name: number
-- in: tenant, id
SELECT number FROM schedule WHERE tenant = :tenant AND id = :id;

-- name: runs
-- Index: the key of run; job_id, one look a run.
-- in: schedule, before, limit
SELECT @run.columns(run)@, job.claimed
FROM run
LEFT JOIN job ON job.id = run.job_id
WHERE run.schedule = :schedule AND run.due < :before
ORDER BY run.due DESC
LIMIT :limit;
