-- replay: terminal jobs again, with the same id and sequence number and the next generation.
-- The lease number goes on growing. Lock: the jobs themselves, so that none ends meanwhile, then their
-- schedules.
-- Functions without settings of their own are called only by those that have them.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION replay(ids_ uuid[])
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    again_ uuid[];
BEGIN
    PERFORM keep_jobs(ids_);
    PERFORM lock_ended(ids_);
    again_ := run_again(ids_, now_ms(), ARRAY['succeeded', 'cancelled', 'expired', 'dead']);
    RETURN QUERY
        SELECT found.id,
               CASE WHEN found.id IN (SELECT unnest(again_)) THEN 'done' ELSE 'conflict' END,
               found.state
        FROM whereabouts(ids_) AS found;
END
$$;

-- run_again: begin the next life of those of these jobs that ended in one of these states.
CREATE OR REPLACE FUNCTION run_again(ids_ uuid[], now_ bigint, states_ text[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    again_ uuid[];
    lanes_ integer[];
    sisters_ integer[];
    schedules_ text[];
    resumed_ uuid[];
BEGIN
    PERFORM lock_schedules(ARRAY(
        SELECT found.schedule FROM whereabouts(ids_) AS found WHERE found.schedule IS NOT NULL));
    -- A suspect is none in its new life.
    SELECT array_agg(s.lane), array_agg(s.sister)
    INTO lanes_, sisters_
    FROM sister_lanes(ARRAY(SELECT found.lane FROM whereabouts(ids_) AS found), false) AS s;
    WITH finished AS (
        DELETE FROM done WHERE done.id = ANY (ids_) AND done.state = ANY (states_)
        RETURNING done.*
    ), buried AS (
        DELETE FROM dead WHERE dead.id = ANY (ids_) AND dead.state = ANY (states_)
        RETURNING dead.*
    ), ended AS (
        SELECT * FROM finished UNION ALL SELECT * FROM buried
    ), kept AS (
        -- The attempt that succeeded stood in the job alone; the new life will overwrite it.
        INSERT INTO attempt (job_id, generation, lease, nonce, number, worker, outcome, started,
                             finished, error)
        SELECT e.id, e.generation, e.lease, e.nonce, e.attempt + 1, e.worker, e.state, e.claimed,
               e.finished, NULL
        FROM ended AS e
        WHERE e.state = 'succeeded'
        ON CONFLICT DO NOTHING
    ), forgotten AS (
        DELETE FROM progress USING ended AS e WHERE progress.job_id = e.id
    ), again AS (
        INSERT INTO job (seq, id, lane, tenant, state, due, created, args, extras, delivery, cost,
                         size, schedule, generation, lease, nonce)
        SELECT e.seq, e.id, coalesce(sisters_[array_position(lanes_, e.lane)], e.lane), e.tenant,
               'waiting', now_, e.created, e.args, e.extras,
               e.delivery, e.cost, e.size, e.schedule, e.generation + 1, e.lease, e.nonce
        FROM ended AS e
        RETURNING job.id, job.lane, job.tenant, job.seq, job.schedule
    ), told AS (
        INSERT INTO arrival (lane, tenant, due, seq)
        SELECT again.lane, again.tenant, now_, min(again.seq)
        FROM again
        GROUP BY again.lane, again.tenant
    )
    SELECT coalesce(array_agg(again.id), '{}'),
           array_agg(again.schedule) FILTER (WHERE again.schedule IS NOT NULL),
           array_agg(again.id) FILTER (WHERE again.schedule IS NOT NULL)
    INTO again_, schedules_, resumed_
    FROM again;
    IF resumed_ IS NOT NULL THEN
        PERFORM resume_runs(schedules_, resumed_);
    END IF;
    RETURN again_;
END
$$;
