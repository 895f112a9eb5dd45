-- due_schedules: hand out what is to be planned now. Held ones are not in the index. Indexes:
-- schedule_awake; run_backfilling, one look a schedule.
-- fire: write plans. Guard: version and cursor, read and written behind the one write lock.
-- Indexes: schedule_id, then the row itself; job_id for the active run; those of runs by name.

-- part: due
SELECT @schedule.columns@, number, wake,
       (SELECT count(*) FROM run INDEXED BY run_backfilling
        WHERE run.schedule = schedule.number AND run.kind = 'backfill' AND run.state = 'started')
FROM schedule INDEXED BY schedule_awake
WHERE wake IS NOT NULL AND hold IS NULL AND wake <= :now

-- name: longest
-- in: now, limit
@due@
ORDER BY wake, tenant, id
LIMIT :limit;

-- name: newest
-- in: now, limit
@due@
ORDER BY wake DESC, tenant DESC, id DESC
LIMIT :limit;

-- name: lease
-- in: until, number
UPDATE schedule SET wake = :until WHERE number = :number;

-- name: next
SELECT wake
FROM schedule INDEXED BY schedule_awake
WHERE wake IS NOT NULL AND hold IS NULL
ORDER BY wake
LIMIT 1;

-- name: skip
-- Unless the occurrence has a run, or stands among others that were skipped together.
-- in: schedule, due, now, reason, first, count
INSERT INTO run (schedule, due, kind, state, at, reason, first, count)
SELECT :schedule, :due, 'due', 'skipped', :now, :reason, :first, :count
WHERE NOT EXISTS (
    SELECT 1 FROM run
    WHERE schedule = :schedule AND due >= :due AND state = 'skipped' AND first <= :first
)
ON CONFLICT DO NOTHING;

-- name: write
-- The first mark of a hold stays. What moves no cursor, and is not to be written over, is a version.
-- in: cursor, due, wake, hold, backfill, zones, fired, skipped, last_due, last_job, active, number
UPDATE schedule
SET version = version + (backfill IS NOT :backfill OR (hold IS NULL AND :hold IS NOT NULL)),
    cursor = max(cursor, :cursor),
    due = :due,
    wake = :wake,
    hold = coalesce(hold, :hold),
    backfill = :backfill,
    zones = :zones,
    fired = fired + :fired,
    skipped = skipped + :skipped,
    last_due = max(coalesce(last_due, :last_due), coalesce(:last_due, last_due)),
    last_job = coalesce(:last_job, last_job),
    active = :active
WHERE number = :number;

-- name: forget_succeeded
-- in: schedule, keep, limit
DELETE FROM run
WHERE schedule = :schedule AND due IN (
    SELECT due
    FROM run INDEXED BY run_succeeded
    WHERE schedule = :schedule
      AND state = 'succeeded'
      AND due <= (SELECT due FROM run INDEXED BY run_succeeded
                  WHERE schedule = :schedule AND state = 'succeeded'
                  ORDER BY due DESC LIMIT 1 OFFSET :keep)
    ORDER BY due
    LIMIT :limit
);

-- name: forget_failed
-- in: schedule, keep, limit
DELETE FROM run
WHERE schedule = :schedule AND due IN (
    SELECT due
    FROM run INDEXED BY run_failed
    WHERE schedule = :schedule
      AND state IN ('skipped', 'dead', 'cancelled', 'expired')
      AND due <= (SELECT due FROM run INDEXED BY run_failed
                  WHERE schedule = :schedule
                    AND state IN ('skipped', 'dead', 'cancelled', 'expired')
                  ORDER BY due DESC LIMIT 1 OFFSET :keep)
    ORDER BY due
    LIMIT :limit
);
