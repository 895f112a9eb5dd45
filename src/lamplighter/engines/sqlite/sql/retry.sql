-- retry: a waiting job becomes due now.

-- name: retry
-- in: now, seq
UPDATE job SET due = :now WHERE seq = :seq AND state = 'waiting';
