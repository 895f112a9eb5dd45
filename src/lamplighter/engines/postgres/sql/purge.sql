-- purge: remove terminal jobs with all that is kept about them; their keys stay.
-- Guard: only `done` and `dead` are touched. Lock: the jobs, so that none ends meanwhile.
-- Functions without settings of their own are called only by those that have them.
-- out  id, answer, state: one row for each job that is known
CREATE OR REPLACE FUNCTION purge(ids_ uuid[])
RETURNS TABLE (id uuid, answer text, state text)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    gone_ uuid[];
BEGIN
    PERFORM keep_jobs(ids_);
    gone_ := remove_jobs(ids_);
    RETURN QUERY
        SELECT g.id, 'done', NULL FROM unnest(gone_) AS g(id)
        UNION ALL
        SELECT found.id, 'conflict', found.state FROM whereabouts(ids_) AS found;
END
$$;

-- remove_jobs: remove terminal jobs with all that is kept about them; gives those that were there.
-- Also used by prune. Index: done_id, the key of dead.
CREATE OR REPLACE FUNCTION remove_jobs(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    gone_ uuid[];
BEGIN
    WITH finished AS (
        DELETE FROM done WHERE done.id = ANY (ids_) RETURNING done.id
    ), buried AS (
        DELETE FROM dead WHERE dead.id = ANY (ids_) RETURNING dead.id
    )
    SELECT coalesce(array_agg(e.id), '{}') INTO gone_
    FROM (SELECT finished.id FROM finished UNION ALL SELECT buried.id FROM buried) AS e;
    PERFORM forget(gone_);
    RETURN gone_;
END
$$;

-- forget: remove what is kept about jobs that are gone. Index: the keys of attempt, log, progress.
CREATE OR REPLACE FUNCTION forget(ids_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM attempt WHERE attempt.job_id = ANY (ids_);
    DELETE FROM log WHERE log.job_id = ANY (ids_);
    DELETE FROM progress WHERE progress.job_id = ANY (ids_);
END
$$;
