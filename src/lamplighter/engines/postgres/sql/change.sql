-- change: do what an operator asks to jobs, each as the table of the action says: model/changes.py.
-- Lock: the queues where the action moves jobs that have not ended, then the jobs, then the schedules
-- of those that end or run again.
-- Functions without settings of their own are called only by those that have them.
-- in   table_   the letter of the effect for each situation, by its number
-- out  id, situation: one row for each job that is known
CREATE OR REPLACE FUNCTION change(
    ids_ uuid[], table_ text, queues_ boolean, mark_ text, reason_ text
)
RETURNS TABLE (id uuid, situation integer)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
    situations_ integer[];
    effect_ record;
BEGIN
    ids_ := lock_jobs(ids_, queues_);
    now_ := now_ms();
    mark_ := mark_at(mark_, now_);
    SELECT array_agg(found.id), array_agg(found.situation)
    INTO ids_, situations_
    FROM situations(ids_, now_) AS found;
    FOR effect_ IN
        SELECT substr(table_, found.situation + 1, 1) AS letter, array_agg(found.id) AS ids
        FROM unnest(ids_, situations_) AS found(id, situation)
        GROUP BY letter
    LOOP
        CASE effect_.letter
            WHEN '-' THEN NULL;
            WHEN 'c', 'a' THEN PERFORM cancel_and_tell(effect_.ids, mark_, reason_, now_);
            WHEN 'h' THEN PERFORM hold_jobs(effect_.ids, mark_);
            WHEN 'u' THEN PERFORM free_jobs(effect_.ids);
            WHEN 'd' THEN PERFORM make_due(effect_.ids, now_);
            WHEN 'g' THEN PERFORM run_again(effect_.ids, now_, 0);
            WHEN 'r' THEN PERFORM run_again(effect_.ids, now_, 1);
            WHEN 'x' THEN PERFORM remove_jobs(effect_.ids);
            WHEN 'e' THEN
                PERFORM remove_keys(effect_.ids);
                PERFORM remove_jobs(effect_.ids);
        END CASE;
    END LOOP;
    RETURN QUERY SELECT found.id, found.situation
                 FROM unnest(ids_, situations_) AS found(id, situation);
END
$$;

-- situations: these jobs as they are now, each once, with the number of their situation; unknown ones
-- are missing.
CREATE OR REPLACE FUNCTION situations(ids_ uuid[], now_ bigint)
RETURNS TABLE (id uuid, situation integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    states_ CONSTANT text[] :=
        '{blocked,waiting,running,succeeded,dead,cancelled,expired}';  -- in the order of JobState
BEGIN
    RETURN QUERY
        SELECT found.id,
               8 * (array_position(states_, found.state) - 1) + 4 * found.held::integer
               + 2 * found.cancelling::integer + (found.due <= now_)::integer
        FROM whereabouts(ids_) AS found;
END
$$;

-- lock_jobs: take the locks of these jobs' queues, if `queues_`, then of the jobs themselves.
-- Returns the jobs that are locked: of these, one that waits now goes on waiting, one that runs goes
-- on running, and one that has ended is not run again. Without the queues, one that has not ended is
-- only kept from ending; claims and renewals go on. A job never changes its queue, so that one read
-- of the queues is enough, wherever the job is; one that is submitted only after that, or removed
-- meanwhile, is not known to this call. Whoever waits for a job with the locks of queues holds up all
-- claims of these: after a while it gives up, and the call begins again.
CREATE OR REPLACE FUNCTION lock_jobs(ids_ uuid[], queues_ boolean) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    known_ uuid[];
    lanes_ integer[];
    locked_ uuid[] := '{}';
    timeout_ CONSTANT text := current_setting('lock_timeout');
BEGIN
    SELECT coalesce(array_agg(found.id), '{}'), array_agg(DISTINCT found.lane)
    INTO known_, lanes_
    FROM whereabouts(ids_) AS found;
    IF queues_ THEN
        PERFORM lock_queues(ARRAY(SELECT lane.queue FROM lane WHERE lane.id = ANY (lanes_)));
        PERFORM set_config('lock_timeout', '100ms', true);
    END IF;
    -- Jobs end and are run again meanwhile: who was not found here is there, and the other way round.
    FOR look_ IN 1..3 LOOP
        IF queues_ THEN
            locked_ := locked_ || ARRAY(
                SELECT job.id FROM job WHERE job.id = ANY (known_) ORDER BY job.id FOR UPDATE);
        ELSE
            locked_ := locked_ || ARRAY(
                SELECT job.id FROM job WHERE job.id = ANY (known_) ORDER BY job.id FOR KEY SHARE);
        END IF;
        locked_ := locked_
            || ARRAY(SELECT done.id FROM done WHERE done.id = ANY (known_)
                     ORDER BY done.id FOR UPDATE)
            || ARRAY(SELECT dead.id FROM dead WHERE dead.id = ANY (known_)
                     ORDER BY dead.id FOR UPDATE);
        known_ := ARRAY(SELECT k.id FROM unnest(known_) AS k(id) WHERE k.id <> ALL (locked_));
        EXIT WHEN cardinality(known_) = 0;
    END LOOP;
    PERFORM set_config('lock_timeout', timeout_, true);
    RETURN locked_;
END
$$;

-- whereabouts: these jobs as they are now, each once; unknown ones are missing.
CREATE OR REPLACE FUNCTION whereabouts(ids_ uuid[])
RETURNS TABLE (id uuid, seq bigint, state text, lane integer, tenant text, due bigint,
               held boolean, cancelling boolean, schedule text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT job.id, job.seq, job.state, job.lane, job.tenant, job.due, job.hold IS NOT NULL,
               job.cancel IS NOT NULL, job.schedule
        FROM job WHERE job.id = ANY (ids_)
        UNION ALL
        SELECT done.id, done.seq, done.state, done.lane, done.tenant, done.due, false, false,
               done.schedule
        FROM done WHERE done.id = ANY (ids_)
        UNION ALL
        SELECT dead.id, dead.seq, dead.state, dead.lane, dead.tenant, dead.due, false, false,
               dead.schedule
        FROM dead WHERE dead.id = ANY (ids_);
END
$$;
