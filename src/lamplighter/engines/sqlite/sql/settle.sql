-- settle: write what claims came to. Guard: state, lease and nonce, read and written behind the one
-- write lock; the number alone repeats after a restored store. Index: job_id, then the row itself.

-- name: current
-- in: ids
SELECT job.id, job.seq, job.state, job.lease, job.nonce, job.cancel IS NOT NULL, job.expires,
       job.lane, job.tenant, job.hold IS NOT NULL, job.generation, job.claimed, job.worker,
       job.attempt, job.schedule, job.started
FROM json_each(:ids) AS given
CROSS JOIN job ON job.id = given.value;

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

-- name: end
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

-- name: history
-- in: @attempt.columns@
INSERT INTO attempt (@attempt.columns@)
VALUES (@attempt.values@)
ON CONFLICT DO NOTHING;
