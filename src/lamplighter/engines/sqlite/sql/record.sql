-- record: keep what running attempts have to say. Guard: state, lease and nonce, read and written
-- behind the one write lock. Also used by settle, which has checked the fence itself.

-- name: held
-- Index: job_id.
-- in: id, lease, nonce
SELECT 1 FROM job WHERE id = :id AND state = 'running' AND lease = :lease AND nonce = :nonce;

-- name: started
-- in: id, lease
UPDATE job SET started = :lease WHERE id = :id AND lease = :lease AND started <> :lease;

-- name: progress
-- in: job_id, lease, value
INSERT INTO progress (job_id, lease, value) VALUES (:job_id, :lease, :value)
ON CONFLICT (job_id) DO UPDATE SET lease = excluded.lease, value = excluded.value;

-- name: piece
-- in: job_id, lease, number, data
INSERT INTO log (job_id, lease, number, data) VALUES (:job_id, :lease, :number, :data)
ON CONFLICT DO NOTHING;

-- name: drop
-- in: job_id, lease, first, end
DELETE FROM log
WHERE job_id = :job_id AND lease = :lease AND number >= :first AND number < :end;
