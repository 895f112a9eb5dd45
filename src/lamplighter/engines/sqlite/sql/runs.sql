-- Runs: what became of occurrences. Used by every verb that makes a run or ends its job.

-- name: standing
-- Schedules by which their runs are judged. Indexes: schedule_id, job_id, run_queued.
-- in: keys
SELECT schedule.tenant, schedule.id, schedule.number, schedule.version, schedule.cursor,
       schedule.active, job.state,
       EXISTS (SELECT 1 FROM run INDEXED BY run_queued
               WHERE run.schedule = schedule.number AND run.state = 'queued')
FROM json_each(:keys) AS given
CROSS JOIN schedule ON schedule.tenant = json_extract(given.value, '$[0]')
    AND schedule.id = json_extract(given.value, '$[1]')
LEFT JOIN job ON job.id = schedule.active;

-- name: insert
-- Guard: unique (schedule, due).
-- in: schedule, due, kind, state, now, job_id, asked, reason
INSERT INTO run (schedule, due, kind, state, at, job_id, asked, reason, count)
VALUES (:schedule, :due, :kind, :state, :now, :job_id, :asked, :reason, 1)
ON CONFLICT DO NOTHING;

-- name: insert_past
-- The same for a backfill, whose run takes the place of a skipped one.
-- in: schedule, due, kind, state, now, job_id, asked, reason
INSERT INTO run (schedule, due, kind, state, at, job_id, asked, reason, count)
VALUES (:schedule, :due, :kind, :state, :now, :job_id, :asked, :reason, 1)
ON CONFLICT (schedule, due) DO UPDATE SET
    kind = excluded.kind,
    state = excluded.state,
    at = excluded.at,
    job_id = excluded.job_id,
    asked = NULL,
    reason = NULL,
    first = NULL,
    count = 1,
    finished = NULL
WHERE run.state = 'skipped';

-- name: first_queued
-- Index: run_queued.
-- in: schedule
SELECT due, job_id
FROM run INDEXED BY run_queued
WHERE schedule = :schedule AND state = 'queued'
ORDER BY due
LIMIT 1;

-- name: queued
-- All that are queued but the one with this due time. Index: run_queued.
-- in: schedule, due
SELECT due, job_id
FROM run INDEXED BY run_queued
WHERE schedule = :schedule AND state = 'queued' AND due IS NOT :due
ORDER BY due;

-- name: become
-- in: state, finished, schedule, due
UPDATE run SET state = :state, finished = :finished WHERE schedule = :schedule AND due = :due;

-- name: replaced
-- in: schedule, due
UPDATE run SET state = 'skipped', reason = 'replaced' WHERE schedule = :schedule AND due = :due;

-- name: job
-- in: id
SELECT state, finished FROM job WHERE id = :id;

-- name: end
-- Index: run_job.
-- in: state, now, job_id
UPDATE run SET state = :state, finished = :now WHERE job_id = :job_id;

-- name: wake
-- A job has ended: its schedule is looked at at once, unless that changes nothing. Indexes: run_job,
-- then the row itself, run_queued.
-- in: state, now, job_id
UPDATE schedule
SET failures = CASE :state
        WHEN 'succeeded' THEN 0
        WHEN 'dead' THEN failures + 1
        ELSE failures
    END,
    wake = CASE
        WHEN :state = 'succeeded' AND backfill IS NULL AND NOT EXISTS (
            SELECT 1 FROM run INDEXED BY run_queued
            WHERE run.schedule = schedule.number AND run.state = 'queued'
        ) THEN wake
        ELSE min(coalesce(wake, :now), :now)
    END
WHERE number IN (SELECT run.schedule FROM run WHERE run.job_id = :job_id);

-- name: again
-- Index: run_job.
-- in: job_id
UPDATE run SET state = 'started', finished = NULL, reason = NULL WHERE job_id = :job_id;
