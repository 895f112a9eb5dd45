-- renew: extend leases. Guard: state, lease and nonce. Index: job_id.

-- name: renew
-- in: expires, lease_ms, id, lease, nonce
UPDATE job
SET expires = :expires, lease_ms = :lease_ms
WHERE id = :id AND state = 'running' AND lease = :lease AND nonce = :nonce
RETURNING cancel IS NOT NULL;
