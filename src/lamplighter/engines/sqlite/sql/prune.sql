-- prune: retention, in bounded steps. Only terminal records ever go.

-- name: finished
-- The oldest of the three kinds. Indexes: job_succeeded, job_cancelled, job_expired.
-- in: before, limit
SELECT seq, id FROM (
    SELECT * FROM (SELECT seq, id, finished FROM job INDEXED BY job_succeeded
                   WHERE state = 'succeeded' AND finished < :before
                   ORDER BY finished, seq LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT seq, id, finished FROM job INDEXED BY job_cancelled
                   WHERE state = 'cancelled' AND finished < :before
                   ORDER BY finished, seq LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT seq, id, finished FROM job INDEXED BY job_expired
                   WHERE state = 'expired' AND finished < :before
                   ORDER BY finished, seq LIMIT :limit)
)
ORDER BY finished, seq
LIMIT :limit;

-- name: how_many
-- The same indexes, whole; they hold nothing but the time.
SELECT (SELECT count(*) FROM job INDEXED BY job_succeeded WHERE state = 'succeeded')
     + (SELECT count(*) FROM job INDEXED BY job_cancelled WHERE state = 'cancelled')
     + (SELECT count(*) FROM job INDEXED BY job_expired WHERE state = 'expired');

-- name: dead
-- Index: job_dead.
-- in: before, limit
SELECT seq, id
FROM job INDEXED BY job_dead
WHERE state = 'dead' AND finished < :before
ORDER BY finished, seq
LIMIT :limit;

-- name: pieces
-- How many pieces each job's log has, in the order given. Index: the key of log.
-- in: ids
SELECT (SELECT count(*) FROM log WHERE log.job_id = given.value)
FROM json_each(:ids) AS given
ORDER BY given.key;

-- name: keys
-- in: before, limit
DELETE FROM idempotency
WHERE (tenant, scope, key) IN (
    SELECT tenant, scope, key
    FROM idempotency AS aged
    WHERE created < :before
      AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = aged.job_id)
    ORDER BY created
    LIMIT :limit
);

-- name: requests
-- in: before, limit
DELETE FROM request
WHERE nonce IN (
    SELECT nonce
    FROM request
    WHERE at < :before
      AND nonce NOT IN (SELECT nonce FROM job INDEXED BY job_running WHERE state = 'running')
    ORDER BY at
    LIMIT :limit
);

-- name: shares
-- A share at or below the clock says nothing once its tenant has no turn in the band.
-- in: limit
DELETE FROM share
WHERE (band, tenant) IN (
    SELECT share.band, share.tenant
    FROM share
    JOIN band ON band.id = share.band
    WHERE share.time <= band.clock
      AND NOT EXISTS (
          SELECT 1 FROM lane
          JOIN turn ON turn.lane = lane.id AND turn.tenant = share.tenant
          WHERE lane.band = share.band
      )
    LIMIT :limit
);

-- name: workers
-- in: before
DELETE FROM worker WHERE beat < :before;

-- name: worker_types
DELETE FROM worker_type WHERE worker NOT IN (SELECT id FROM worker);

-- name: types
-- in: before
DELETE FROM type_version
WHERE seen < :before
  AND NOT EXISTS (
      SELECT 1 FROM worker_type
      WHERE worker_type.name = type_version.name AND worker_type.hash = type_version.hash
  );

-- name: removed_schedule
SELECT number FROM removed_schedule ORDER BY number LIMIT 1;

-- name: runs
-- in: schedule, limit
DELETE FROM run
WHERE schedule = :schedule
  AND due IN (SELECT due FROM run WHERE schedule = :schedule ORDER BY due LIMIT :limit);

-- name: forget_schedule
-- in: number
DELETE FROM removed_schedule WHERE number = :number;
