-- unhold: put jobs back into their turns, due when they were due. Lock: the queues, then the jobs.
-- Functions without settings of their own are called only by those that have them.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION unhold(ids_ uuid[])
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    ids_ := lock_jobs(ids_);
    RETURN QUERY
        SELECT found.id,
               CASE WHEN found.state NOT IN ('waiting', 'blocked', 'running') THEN 'conflict'
                    WHEN found.held THEN 'done'
                    ELSE 'already' END,
               found.state
        FROM whereabouts(ids_) AS found;
    PERFORM free_jobs(ids_);
END
$$;

-- free_jobs: let go of those of these jobs that are held. Lock: the jobs, held already.
CREATE OR REPLACE FUNCTION free_jobs(ids_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH free AS (
        UPDATE job
        SET hold = NULL
        WHERE job.id = ANY (ids_) AND job.hold IS NOT NULL
        RETURNING job.lane, job.tenant, job.due, job.seq, job.state
    )
    INSERT INTO arrival (lane, tenant, due, seq)
    SELECT DISTINCT ON (free.lane, free.tenant) free.lane, free.tenant, free.due, free.seq
    FROM free
    WHERE free.state = 'waiting'
    ORDER BY free.lane, free.tenant, free.due, free.seq;
END
$$;
