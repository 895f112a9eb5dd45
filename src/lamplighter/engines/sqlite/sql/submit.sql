-- submit: store new jobs. Guard: unique id; unique (tenant, scope, key), both in this write.

-- name: last
SELECT coalesce(max(seq), 0) FROM job;

-- name: insert
-- in: @submitted.columns@, seq, lane, size, hold
INSERT INTO job (@submitted.columns@, seq, lane, size, hold, state)
VALUES (@submitted.values@, :seq, :lane, :size, :hold, 'waiting')
ON CONFLICT (id) DO NOTHING;

-- name: known
-- Which of these ids exist? Index: job_id.
-- in: ids
SELECT job.id
FROM json_each(:ids) AS given
CROSS JOIN job ON job.id = given.value;

-- name: key
-- in: tenant, scope, key
SELECT idempotency.body, idempotency.job_id, job.seq
FROM idempotency
LEFT JOIN job ON job.id = idempotency.job_id
WHERE idempotency.tenant = :tenant AND idempotency.scope = :scope AND idempotency.key = :key;

-- name: insert_key
-- in: tenant, scope, key, body, job_id, created
INSERT INTO idempotency (tenant, scope, key, body, job_id, created)
VALUES (:tenant, :scope, :key, :body, :job_id, :created);
