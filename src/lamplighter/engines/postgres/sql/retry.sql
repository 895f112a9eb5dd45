-- retry: make waiting jobs due now, and run dead ones again. Lock: the queues, then the jobs.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION retry(ids_ uuid[])
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
BEGIN
    ids_ := lock_jobs(ids_);
    now_ := now_ms();
    RETURN QUERY
        SELECT found.id,
               CASE WHEN found.state = 'dead' THEN 'done'
                    WHEN found.state <> 'waiting' THEN 'conflict'
                    WHEN found.due <= now_ THEN 'already'
                    ELSE 'done' END,
               CASE WHEN found.state = 'dead' THEN 'waiting' ELSE found.state END
        FROM whereabouts(ids_) AS found;
    -- It only gets earlier: the turn learns of its new place, and where it stood says nothing.
    WITH moved AS (
        UPDATE job
        SET due = now_
        WHERE job.id = ANY (ids_) AND job.state = 'waiting' AND job.due > now_
        RETURNING job.lane, job.tenant, job.seq, job.hold
    )
    INSERT INTO arrival (lane, tenant, due, seq)
    SELECT moved.lane, moved.tenant, now_, min(moved.seq)
    FROM moved
    WHERE moved.hold IS NULL
    GROUP BY moved.lane, moved.tenant;
    PERFORM run_again(ids_, now_, ARRAY['dead']);
END
$$;
