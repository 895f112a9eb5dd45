-- unhold: put a job back into its turn, due when it was due.

-- name: unhold
-- in: seq
UPDATE job SET hold = NULL WHERE seq = :seq;
