-- hold: take jobs out of their turns until they are unheld. Lock: the queues, then the jobs.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION hold(ids_ uuid[], mark_ text)
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    left_lanes_ integer[];
    left_tenants_ text[];
BEGIN
    ids_ := lock_jobs(ids_);
    RETURN QUERY
        SELECT found.id,
               CASE WHEN found.state NOT IN ('waiting', 'blocked', 'running') THEN 'conflict'
                    WHEN found.held THEN 'already'
                    ELSE 'done' END,
               found.state
        FROM whereabouts(ids_) AS found;
    WITH held AS (
        UPDATE job
        SET hold = mark_at(mark_, now_ms())
        WHERE job.id = ANY (ids_) AND job.hold IS NULL
        RETURNING job.lane, job.tenant, job.state
    )
    SELECT array_agg(held.lane), array_agg(held.tenant)
    INTO left_lanes_, left_tenants_
    FROM held
    WHERE held.state = 'waiting';
    IF left_lanes_ IS NOT NULL THEN
        PERFORM recount(left_lanes_, left_tenants_);
    END IF;
END
$$;
