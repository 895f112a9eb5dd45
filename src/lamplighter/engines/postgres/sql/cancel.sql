-- cancel: end what waits, ask what runs. Lock: the queues, then the jobs, then the schedules of those
-- that end. Guard: the state, read under the locks.
-- Functions without settings of their own are called only by those that have them.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION cancel(ids_ uuid[], mark_ text, reason_ text)
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
    ended_ record;
BEGIN
    ids_ := lock_jobs(ids_);
    now_ := now_ms();
    RETURN QUERY
        SELECT found.id,
               CASE WHEN found.state = 'running' AND NOT found.cancelling THEN 'requested'
                    WHEN found.state IN ('running', 'cancelled') THEN 'already'
                    WHEN found.state IN ('waiting', 'blocked') THEN 'done'
                    ELSE 'conflict' END,
               CASE WHEN found.state IN ('waiting', 'blocked') THEN 'cancelled'
                    ELSE found.state END
        FROM whereabouts(ids_) AS found;
    ended_ := cancel_jobs(ids_, mark_at(mark_, now_), reason_, now_);
    IF ended_.jobs_ IS NOT NULL THEN
        PERFORM end_runs(ended_.schedules_, ended_.jobs_,
                         array_fill('cancelled'::text, ARRAY[cardinality(ended_.jobs_)]), now_);
    END IF;
END
$$;

-- cancel_jobs: do so with jobs that are locked, as are their queues.
-- out  those that have ended and are of a schedule, and their schedules; NULL for none
CREATE OR REPLACE FUNCTION cancel_jobs(
    ids_ uuid[], cancel_ text, reason_ text, now_ bigint, OUT schedules_ text[], OUT jobs_ uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
    left_lanes_ integer[];
    left_tenants_ text[];
BEGIN
    UPDATE job
    SET cancel = cancel_
    WHERE job.id = ANY (ids_) AND job.state = running_ AND job.cancel IS NULL;
    WITH ended AS (
        DELETE FROM job
        WHERE job.id = ANY (ids_) AND job.state IN ('waiting', 'blocked')
        RETURNING job.*
    ), kept AS (
        INSERT INTO done (seq, id, lane, tenant, state, due, created, args, extras, delivery, cost,
                          size, schedule, generation, lease, attempt, crashes, losses, suspect,
                          cancel, nonce, worker, handout, claimed, finished, reason, error,
                          fingerprint)
        SELECT e.seq, e.id, e.lane, e.tenant, 'cancelled', e.due, e.created, e.args, e.extras,
               e.delivery, e.cost, e.size, e.schedule, e.generation, e.lease, e.attempt, e.crashes,
               e.losses, e.suspect, cancel_, e.nonce, e.worker, e.handout, e.claimed, now_,
               reason_, e.error, e.fingerprint
        FROM ended AS e
    )
    SELECT array_agg(e.lane) FILTER (WHERE e.state = 'waiting' AND e.hold IS NULL),
           array_agg(e.tenant) FILTER (WHERE e.state = 'waiting' AND e.hold IS NULL),
           array_agg(e.schedule) FILTER (WHERE e.schedule IS NOT NULL),
           array_agg(e.id) FILTER (WHERE e.schedule IS NOT NULL)
    INTO left_lanes_, left_tenants_, schedules_, jobs_
    FROM ended AS e;
    IF left_lanes_ IS NOT NULL THEN
        PERFORM recount(left_lanes_, left_tenants_);
    END IF;
END
$$;
