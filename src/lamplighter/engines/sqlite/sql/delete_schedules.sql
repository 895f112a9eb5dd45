-- delete_schedules: remove schedules. Their runs are nobody's from then on, and prune removes them:
-- they may be many.

-- name: delete
-- in: number
DELETE FROM schedule WHERE number = :number;

-- name: leave_runs
-- in: number
INSERT INTO removed_schedule (number) VALUES (:number);
