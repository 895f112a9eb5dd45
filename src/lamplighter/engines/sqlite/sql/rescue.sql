-- rescue: read claims whose lease has ended; the write is settle. Index: job_running.

-- name: ahead
-- Leases that end later than they possibly can: the clock went back.
-- in: now
SELECT count(*) FROM job INDEXED BY job_running WHERE state = 'running' AND expires > :now + lease_ms;

-- name: cut
-- in: now
UPDATE job SET expires = :now + lease_ms WHERE state = 'running' AND expires > :now + lease_ms;

-- name: expired
-- in: now, limit
SELECT @job.columns@, @claim.columns@, started = lease, :now - expires, lane
FROM job INDEXED BY job_running
WHERE state = 'running' AND expires <= :now
ORDER BY expires
LIMIT :limit;

-- name: claims_of
-- in: worker
SELECT @job.columns@, @claim.columns@, started = lease, lane
FROM job INDEXED BY job_running
WHERE state = 'running' AND worker = :worker
ORDER BY handout;
