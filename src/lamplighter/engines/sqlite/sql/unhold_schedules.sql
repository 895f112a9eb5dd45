-- unhold_schedules: let held schedules go on, due now.

-- name: unhold
-- in: now, number
UPDATE schedule
SET hold = NULL, version = version + 1, failures = 0, wake = :now
WHERE number = :number;
