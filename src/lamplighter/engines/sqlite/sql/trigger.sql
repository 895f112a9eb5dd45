-- trigger: make a run now. What it is judged by is read as `fire` reads it.

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

-- name: write
-- in: skipped, last_job, active, wake, number
UPDATE schedule
SET skipped = skipped + :skipped,
    last_job = coalesce(:last_job, last_job),
    active = :active,
    wake = CASE WHEN :wake IS NULL THEN wake ELSE min(coalesce(wake, :wake), :wake) END
WHERE number = :number;
