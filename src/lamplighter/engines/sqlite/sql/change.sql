-- change: what an action of an operator does to a job. The situation was read in the same transaction.

-- name: current
-- Index: job_id.
-- in: ids
SELECT job.id, job.seq, job.state, job.lane, job.tenant, job.due, job.hold IS NOT NULL,
       job.cancel IS NOT NULL, job.schedule
FROM json_each(:ids) AS given
CROSS JOIN job ON job.id = given.value;

-- name: cancel
-- in: now, mark, reason, seq
UPDATE job SET state = 'cancelled', finished = :now, cancel = :mark, reason = :reason WHERE seq = :seq;

-- name: ask
-- in: mark, seq
UPDATE job SET cancel = :mark WHERE seq = :seq;

-- name: hold
-- in: mark, seq
UPDATE job SET hold = :mark WHERE seq = :seq;

-- name: unhold
-- in: seq
UPDATE job SET hold = NULL WHERE seq = :seq;

-- name: due_now
-- in: now, seq
UPDATE job SET due = :now WHERE seq = :seq;

-- name: revive
-- Same id, generation + lives: 0 when a dead job goes on. The lease number goes on growing.
-- in: now, lane, lives, seq
UPDATE job
SET state = 'waiting',
    due = :now,
    lane = :lane,
    generation = generation + :lives,
    @counters.zeros@,
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
WHERE seq = :seq;

-- name: keep_success
-- The attempt that succeeded stands in the job alone; a new life would overwrite it.
-- in: seq
INSERT INTO attempt (@attempt.columns@)
SELECT id, generation, lease, attempt + 1, worker, state, claimed, finished, NULL, nonce
FROM job
WHERE seq = :seq AND state = 'succeeded'
ON CONFLICT DO NOTHING;

-- name: key
-- A key is as old as its job. Indexes: the row itself, idempotency_age.
-- in: seq, job_id
DELETE FROM idempotency
WHERE created = (SELECT job.created FROM job WHERE job.seq = :seq) AND job_id = :job_id;

-- name: write_over
-- From now on what is deleted is written over; otherwise that is left to who uses the space next.
PRAGMA secure_delete = ON;

-- name: write_over_no_more
PRAGMA secure_delete = OFF;
