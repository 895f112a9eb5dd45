-- hold: take a job out of its turn until it is unheld.

-- name: hold
-- in: mark, seq
UPDATE job SET hold = :mark WHERE seq = :seq AND hold IS NULL;
