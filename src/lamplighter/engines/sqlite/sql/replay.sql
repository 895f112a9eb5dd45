-- replay: a terminal job again: same id, generation + 1. The lease number goes on growing.

-- name: replay
-- in: now, lane, seq
UPDATE job
SET state = 'waiting',
    due = :now,
    lane = :lane,
    generation = generation + 1,
    attempt = 0,
    crashes = 0,
    losses = 0,
    suspect = 0,
    hold = NULL,
    cancel = NULL,
    worker = NULL,
    handout = NULL,
    claimed = NULL,
    finished = NULL,
    reason = NULL,
    result = NULL,
    result_note = NULL,
    error = NULL,
    fingerprint = NULL
WHERE seq = :seq AND state IN ('succeeded', 'dead', 'cancelled', 'expired');

-- name: keep_success
-- The attempt that succeeded stands in the job alone; a new life would overwrite it.
-- in: seq
INSERT INTO attempt (
    job_id, generation, lease, nonce, number, worker, outcome, started, finished, error
)
SELECT id, generation, lease, nonce, attempt + 1, worker, state, claimed, finished, NULL
FROM job
WHERE seq = :seq AND state = 'succeeded'
ON CONFLICT DO NOTHING;

-- name: forget_progress
-- in: job_id
DELETE FROM progress WHERE job_id = :job_id;
