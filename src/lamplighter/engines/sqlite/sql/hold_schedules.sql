-- hold_schedules: keep schedules from being fired. Index: schedule_id.

-- name: hold
-- in: mark, number
UPDATE schedule SET hold = :mark, version = version + 1 WHERE number = :number;
