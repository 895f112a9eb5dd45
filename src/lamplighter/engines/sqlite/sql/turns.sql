-- Turns: one row per (lane, tenant) with waiting jobs. Used by every verb that moves a job.

-- name: place
-- A job starts to wait: its turn learns of it, wakes if it is due, keeps its place if awake.
-- in: lane, band, tenant, due, seq, now
INSERT INTO turn (lane, tenant, awake, time, due, seq)
VALUES (
    :lane,
    :tenant,
    CASE
        WHEN EXISTS (SELECT 1 FROM tenant WHERE name = :tenant AND hold IS NOT NULL) THEN 2
        ELSE :due <= :now
    END,
    max(
        coalesce((SELECT time FROM share WHERE band = :band AND tenant = :tenant), 0),
        (SELECT clock FROM band WHERE id = :band)
    ),
    :due,
    :seq
)
ON CONFLICT (lane, tenant) DO UPDATE SET
    due = excluded.due,
    seq = excluded.seq,
    time = CASE WHEN turn.awake = 1 THEN turn.time ELSE excluded.time END,
    awake = CASE WHEN turn.awake = 0 THEN excluded.awake ELSE turn.awake END
WHERE (excluded.due, excluded.seq) < (turn.due, turn.seq);

-- name: head
-- First waiting job of a turn. Index: job_waiting.
-- in: lane, tenant
SELECT due, seq
FROM job
WHERE lane = :lane AND tenant = :tenant AND state = 'waiting' AND hold IS NULL
ORDER BY due, seq
LIMIT 1;

-- name: remove
-- in: lane, tenant
DELETE FROM turn WHERE lane = :lane AND tenant = :tenant;

-- name: rehead
-- A job left the turn: its new head. An awake turn whose head is due later falls asleep.
-- in: lane, tenant, due, seq, now
UPDATE turn
SET due = :due,
    seq = :seq,
    awake = CASE WHEN awake = 1 AND :due > :now THEN 0 ELSE awake END
WHERE lane = :lane AND tenant = :tenant;
