-- due_schedules: hand out what is to be planned now. Runs behind the one write lock. Held ones are
-- not in the index. Indexes: schedule_awake; run_backfilling, one look a schedule.

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
