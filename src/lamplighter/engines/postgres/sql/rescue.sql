-- rescue: read claims whose lease has ended; the write is settle. Index: job_running.
-- out  the columns of a claim, and for how long it has been overdue; longest first
CREATE OR REPLACE FUNCTION rescue(limit_ integer)
RETURNS TABLE (
    id uuid, type text, args bytea, queue text, level smallint, tenant text, due bigint,
    created bigint, delivery text, extras text, attempt integer, crashes integer, losses integer,
    suspect boolean, generation integer, cost integer, schedule text, lease integer, nonce text,
    worker text, handout bigint, overdue bigint
)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
BEGIN
    -- A lease that ends later than it possibly can: the clock went back.
    IF EXISTS (SELECT FROM job
               WHERE job.state = 'running' AND job.expires > now_ + job.lease_ms) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        PERFORM FROM job
        WHERE job.state = 'running' AND job.expires > now_ + job.lease_ms
        ORDER BY job.id
        FOR UPDATE;
        UPDATE job
        SET expires = now_ + job.lease_ms
        WHERE job.state = 'running' AND job.expires > now_ + job.lease_ms;
    END IF;
    RETURN QUERY
        SELECT job.id, lane.type, job.args, lane.queue, lane.level, job.tenant, job.due,
               job.created, job.delivery, job.extras, job.attempt, job.crashes, job.losses,
               job.suspect, job.generation, job.cost, job.schedule, job.lease, job.nonce,
               job.worker, job.handout, now_ - job.expires
        FROM job
        JOIN lane ON lane.id = job.lane
        WHERE job.state = 'running' AND job.expires <= now_
        ORDER BY job.expires
        LIMIT limit_;
END
$$;

-- claims_of: read the claims that a worker holds. Index: job_running, all of it.
CREATE OR REPLACE FUNCTION claims_of(worker_ text)
RETURNS TABLE (
    id uuid, type text, args bytea, queue text, level smallint, tenant text, due bigint,
    created bigint, delivery text, extras text, attempt integer, crashes integer, losses integer,
    suspect boolean, generation integer, cost integer, schedule text, lease integer, nonce text,
    worker text, handout bigint
)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT job.id, lane.type, job.args, lane.queue, lane.level, job.tenant, job.due,
               job.created, job.delivery, job.extras, job.attempt, job.crashes, job.losses,
               job.suspect, job.generation, job.cost, job.schedule, job.lease, job.nonce,
               job.worker, job.handout
        FROM job
        JOIN lane ON lane.id = job.lane
        WHERE job.state = 'running' AND job.worker = worker_
        ORDER BY job.handout;
END
$$;
