-- What the operators' verbs share, called only by them. Index: the keys of job and dead, done_id.

-- lock_jobs: take the locks of these jobs' queues, then of the jobs themselves.
-- Gives the jobs that are locked: of these, one that waits now goes on waiting, one that runs goes
-- on running, and one that has ended is not run again. A job never changes its queue, so that one
-- look for the queues is enough, wherever the job is; one that is submitted only after that look, or
-- removed meanwhile, is not known to this call.
CREATE OR REPLACE FUNCTION lock_jobs(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    known_ uuid[];
    lanes_ integer[];
    locked_ uuid[] := '{}';
BEGIN
    SELECT coalesce(array_agg(found.id), '{}'), array_agg(DISTINCT found.lane)
    INTO known_, lanes_
    FROM whereabouts(ids_) AS found;
    PERFORM lock_queues(ARRAY(SELECT lane.queue FROM lane WHERE lane.id = ANY (lanes_)));
    -- Jobs end and are run again meanwhile: who was not found here is there, and the other way round.
    FOR look_ IN 1..3 LOOP
        locked_ := locked_ || lock_live(known_) || lock_ended(known_);
        known_ := ARRAY(SELECT k.id FROM unnest(known_) AS k(id) WHERE k.id <> ALL (locked_));
        EXIT WHEN cardinality(known_) = 0;
    END LOOP;
    RETURN locked_;
END
$$;

-- lock_live, lock_ended: lock those of these jobs that have not ended, or those that have.
CREATE OR REPLACE FUNCTION lock_live(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT job.id FROM job WHERE job.id = ANY (ids_) ORDER BY job.id FOR UPDATE);
END
$$;

CREATE OR REPLACE FUNCTION lock_ended(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT done.id FROM done WHERE done.id = ANY (ids_) ORDER BY done.id FOR UPDATE)
        || ARRAY(SELECT dead.id FROM dead WHERE dead.id = ANY (ids_) ORDER BY dead.id FOR UPDATE);
END
$$;

-- keep_jobs: let those of these jobs that have not ended not end before this transaction does.
-- Claims and renewals go on.
CREATE OR REPLACE FUNCTION keep_jobs(ids_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM job WHERE job.id = ANY (ids_) ORDER BY job.id FOR KEY SHARE;
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
