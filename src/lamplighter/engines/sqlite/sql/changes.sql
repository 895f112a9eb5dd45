-- What the operators' verbs read first. Index: job_id.

-- name: current
-- in: ids
SELECT job.id, job.seq, job.state, job.lane, job.tenant, job.due, job.hold IS NOT NULL,
       job.cancel IS NOT NULL, job.schedule
FROM json_each(:ids) AS given
CROSS JOIN job ON job.id = given.value;
