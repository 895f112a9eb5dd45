-- The five moves: a job enters its turn, leaves it, starts, stops and ends; and is removed. Turns have
-- one row per (lane, tenant) with waiting jobs. What ends a run of a schedule stands in `runs.sql`.

-- name: enter
-- A job waits now: its turn learns of it, wakes if it is due, keeps its place if awake.
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

-- name: remove_turn
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

-- name: start
-- in: lease, nonce, worker, handout, now, expires, lease_ms, seq
UPDATE job
SET state = 'running',
    lease = :lease,
    nonce = :nonce,
    worker = :worker,
    handout = :handout,
    claimed = :now,
    expires = :expires,
    lease_ms = :lease_ms
WHERE seq = :seq AND state = 'waiting' AND hold IS NULL;

-- name: succeed
-- The common end, with as few columns as it needs.
-- in: now, result, result_note, seq, lease, nonce
UPDATE job
SET state = 'succeeded',
    finished = :now,
    result = :result,
    result_note = :result_note,
    cancel = NULL,
    error = NULL,
    fingerprint = NULL,
    reason = NULL,
    expires = NULL
WHERE seq = :seq AND state = 'running' AND lease = :lease AND nonce = :nonce;

-- name: fail
-- in: state, now, reason, @counters.columns@, error, fingerprint, seq, lease, nonce
UPDATE job
SET state = :state,
    finished = :now,
    reason = :reason,
    @counters.assignments@,
    error = :error,
    fingerprint = :fingerprint,
    cancel = CASE WHEN :state = 'cancelled' THEN cancel END,
    expires = NULL
WHERE seq = :seq AND state = 'running' AND lease = :lease AND nonce = :nonce;

-- name: wait
-- in: due, lane, @counters.columns@, error, fingerprint, seq, lease, nonce
UPDATE job
SET state = 'waiting',
    due = :due,
    lane = :lane,
    @counters.assignments@,
    error = coalesce(:error, error),
    fingerprint = coalesce(:fingerprint, fingerprint),
    expires = NULL
WHERE seq = :seq AND state = 'running' AND lease = :lease AND nonce = :nonce;

-- name: remove_job
-- in: seq
DELETE FROM job WHERE seq = :seq AND state IN ('succeeded', 'dead', 'cancelled', 'expired');

-- name: remove_history
-- in: job_id
DELETE FROM attempt WHERE job_id = :job_id;

-- name: remove_log
-- in: job_id
DELETE FROM log WHERE job_id = :job_id;

-- name: remove_progress
-- in: job_id
DELETE FROM progress WHERE job_id = :job_id;
