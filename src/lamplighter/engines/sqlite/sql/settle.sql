-- settle: write what claims came to. Guard: state, lease and nonce, read and written behind the one
-- write lock; the number alone repeats after a restored store. Index: job_id, then the row itself.
-- The jobs themselves are written by `stop`.

-- name: current
-- in: ids
SELECT job.id, job.seq, job.state, job.lease, job.nonce, job.cancel IS NOT NULL, job.expires,
       job.lane, job.tenant, job.hold IS NOT NULL, job.generation, job.claimed, job.worker,
       job.attempt, job.schedule, job.started
FROM json_each(:ids) AS given
CROSS JOIN job ON job.id = given.value;

-- name: history
-- in: @attempt.columns@
INSERT INTO attempt (@attempt.columns@)
VALUES (@attempt.values@)
ON CONFLICT DO NOTHING;
