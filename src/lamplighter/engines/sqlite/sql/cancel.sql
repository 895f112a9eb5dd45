-- cancel: end what waits, ask what runs. Guard: the state it was found in.

-- name: end
-- in: now, mark, reason, seq
UPDATE job
SET state = 'cancelled', finished = :now, cancel = :mark, reason = :reason
WHERE seq = :seq AND state IN ('waiting', 'blocked');

-- name: ask
-- in: mark, seq
UPDATE job SET cancel = :mark WHERE seq = :seq AND state = 'running' AND cancel IS NULL;
