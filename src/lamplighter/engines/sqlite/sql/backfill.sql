-- backfill: begin to run occurrences of the past. Index: schedule_id.

-- name: current
-- in: tenant, id
SELECT number, backfill FROM schedule WHERE tenant = :tenant AND id = :id;

-- name: begin
-- A plan that knows nothing of it would end it: it counts no longer.
-- in: backfill, now, number
UPDATE schedule
SET backfill = :backfill, version = version + 1, wake = min(coalesce(wake, :now), :now)
WHERE number = :number;
