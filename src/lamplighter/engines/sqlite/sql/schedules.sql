-- put_schedules, hold_schedules, unhold_schedules, delete_schedules, backfill, trigger. Index: schedule_id.
-- Removed schedules leave their runs, which may be many, to prune: they are nobody's from then on.
-- What a trigger is judged by is read as `fire` reads it.

-- name: known
-- in: keys
SELECT schedule.tenant, schedule.id, schedule.number, schedule.version, schedule.spec,
       schedule.type
FROM json_each(:keys) AS given
CROSS JOIN schedule ON schedule.tenant = json_extract(given.value, '$[0]')
    AND schedule.id = json_extract(given.value, '$[1]');

-- name: insert
-- in: tenant, id, spec, type, due, zones, now, cursor
INSERT INTO schedule (tenant, id, spec, type, due, wake, zones, cursor, created, changed)
VALUES (:tenant, :id, :spec, :type, :due, :due, :zones, :cursor, :now, :now)
RETURNING number;

-- name: change
-- Later than before is now: what had fallen due may not wait for the new time. One that is at rest
-- is looked at when it is due. One that was to be looked at, or is being planned by somebody whose
-- plan is void now, is looked at at once.
-- in: spec, type, due, zones, now, number
UPDATE schedule
SET spec = :spec,
    type = :type,
    zones = :zones,
    version = version + 1,
    changed = :now,
    due = CASE WHEN due IS NULL OR :due <= due THEN :due ELSE :now END,
    wake = CASE
        WHEN wake IS NOT due OR wake <= :now THEN min(:now, coalesce(:due, :now))
        WHEN due IS NULL OR :due <= due THEN :due
        ELSE :now
    END
WHERE number = :number;

-- name: current
-- in: ids, tenant
SELECT schedule.id, schedule.number, schedule.hold IS NOT NULL, schedule.backfill
FROM json_each(:ids) AS given
CROSS JOIN schedule ON schedule.tenant = :tenant AND schedule.id = given.value;

-- name: hold
-- in: mark, number
UPDATE schedule SET hold = :mark, version = version + 1 WHERE number = :number;

-- name: unhold
-- in: now, number
UPDATE schedule
SET hold = NULL, version = version + 1, failures = 0, wake = :now
WHERE number = :number;

-- name: delete
-- in: number
DELETE FROM schedule WHERE number = :number;

-- name: leave_runs
-- in: number
INSERT INTO removed_schedule (number) VALUES (:number);

-- name: backfill
-- A plan that knows nothing of it would end it: it counts no longer.
-- in: backfill, now, number
UPDATE schedule
SET backfill = :backfill, version = version + 1, wake = min(coalesce(wake, :now), :now)
WHERE number = :number;

-- name: earlier
-- The run that the same wish made before. Indexes: run_job, run_asked.
-- in: schedule, job_id
SELECT state, job_id FROM run
WHERE run.schedule = :schedule AND run.job_id = :job_id
UNION ALL
SELECT state, job_id FROM run
WHERE run.schedule = :schedule AND run.asked = :job_id
LIMIT 1;

-- name: taken
-- Instants from now on that have a run, and the one that the schedule waits for.
-- in: schedule, now
SELECT due FROM run WHERE schedule = :schedule AND due >= :now
UNION ALL
SELECT due FROM schedule WHERE number = :schedule AND due >= :now;

-- name: triggered
-- in: skipped, last_job, active, wake, number
UPDATE schedule
SET skipped = skipped + :skipped,
    last_job = coalesce(:last_job, last_job),
    active = :active,
    wake = CASE WHEN :wake IS NULL THEN wake ELSE min(coalesce(wake, :wake), :wake) END
WHERE number = :number;
