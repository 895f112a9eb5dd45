-- What is to be locked and known before plans can be judged, called only by fire, trigger and delete.

-- lock_plans: lock what plans may change: jobs first and schedules last, as everybody does.
-- Which jobs these are is found out before the schedules are locked. Who was overtaken by somebody
-- who queued or started another run in between begins anew.
-- in   cancelling_  the schedules whose plans may cancel jobs
CREATE OR REPLACE FUNCTION lock_plans(ids_ text[], cancelling_ text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ uuid[] := jobs_in_the_way(ids_, cancelling_);
    now_there_ uuid[];
BEGIN
    IF cardinality(jobs_) > 0 AND cardinality(cancelling_) > 0 THEN
        PERFORM lock_jobs(jobs_, true);
    ELSIF cardinality(jobs_) > 0 THEN
        -- Nobody hands out a held job, so that the lock of its queue is not needed to let it go.
        PERFORM FROM job WHERE job.id = ANY (jobs_) AND job.hold IS NOT NULL
        ORDER BY job.id FOR UPDATE;
    END IF;
    PERFORM lock_schedules(ids_);
    now_there_ := jobs_in_the_way(ids_, cancelling_);
    IF cardinality(now_there_) > 0
       AND EXISTS (SELECT unnest(now_there_) EXCEPT SELECT unnest(jobs_)) THEN
        RAISE EXCEPTION 'the runs of a schedule have changed meanwhile'
            USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;

-- jobs_in_the_way: the jobs that plans for these schedules may change: of each the one that is queued
-- first, and of those that cancel, all that are queued, and the active one. Index: run_queued.
CREATE OR REPLACE FUNCTION jobs_in_the_way(ids_ text[], cancelling_ text[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ uuid[] := ARRAY(
        SELECT q.job
        FROM unnest(ids_) AS p(id)
        CROSS JOIN LATERAL (
            SELECT run.job FROM run
            WHERE run.schedule = p.id AND run.state = 'queued'
            ORDER BY run.due LIMIT 1
        ) AS q);
BEGIN
    IF cardinality(cancelling_) > 0 THEN
        jobs_ := jobs_ || queued_jobs(cancelling_) || ARRAY(
            SELECT schedule.active FROM schedule
            WHERE schedule.key = ANY (cancelling_) AND schedule.active IS NOT NULL);
    END IF;
    RETURN jobs_;
END
$$;

-- queued_jobs: all jobs of these schedules that are queued. Index: run_queued.
CREATE OR REPLACE FUNCTION queued_jobs(ids_ text[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT q.job
        FROM unnest(ids_) AS p(id)
        CROSS JOIN LATERAL (
            SELECT run.job FROM run WHERE run.schedule = p.id AND run.state = 'queued' OFFSET 0
        ) AS q);
END
$$;

-- read_plans: what is to be known of schedules to judge their plans; lists have one entry per plan.
-- Where the active run is over and another is queued, that one is the active run from now on.
-- out  counted_                 whether the plan counts
--      actives_, states_        the job of the active run, and its state; NULL: it is over
--      queued_                  how many are queued behind it
--      first_dues_, first_jobs_ the queued run that is to be started, and its job; NULL: none
--      starting_                whether there is one at all
--      goods_, rests_           how many runs are kept
CREATE OR REPLACE FUNCTION read_plans(
    ids_ text[], versions_ bigint[], cursors_ bigint[],
    OUT counted_ boolean[], OUT actives_ uuid[], OUT states_ text[], OUT queued_ bigint[],
    OUT first_dues_ bigint[], OUT first_jobs_ uuid[], OUT starting_ boolean,
    OUT goods_ bigint[], OUT rests_ bigint[]
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(f.counted),
           array_agg(CASE WHEN f.starts THEN f.job ELSE f.active END),
           array_agg(CASE WHEN f.starts THEN f.job_state ELSE f.state END),
           array_agg(CASE WHEN f.starts THEN f.number - 1 ELSE coalesce(f.number, 0) END),
           array_agg(CASE WHEN f.starts THEN f.due END),
           array_agg(CASE WHEN f.starts THEN f.job END),
           bool_or(f.starts), array_agg(f.good), array_agg(f.rest)
    INTO counted_, actives_, states_, queued_, first_dues_, first_jobs_, starting_, goods_, rests_
    FROM (
        SELECT s.good IS NOT NULL AS counted, s.active, j.state, q.due, q.job, q.number,
               k.state AS job_state, q.job IS NOT NULL AND j.state IS NULL AS starts,
               s.good, s.rest
        FROM unnest(ids_, versions_, cursors_) WITH ORDINALITY AS p(id, version, cursor, n)
        LEFT JOIN LATERAL (
            SELECT schedule.active, schedule.good, schedule.rest
            FROM schedule
            WHERE schedule.key = p.id
              AND (versions_ IS NULL
                   OR (schedule.version = p.version AND schedule.cursor = p.cursor))
            LIMIT 1
        ) AS s ON true
        LEFT JOIN LATERAL (SELECT job.state FROM job WHERE job.id = s.active LIMIT 1) AS j ON true
        LEFT JOIN LATERAL (
            SELECT run.due, run.job, count(*) OVER () AS number
            FROM run
            WHERE run.schedule = p.id AND run.state = 'queued' AND s.good IS NOT NULL
            ORDER BY run.due
            LIMIT 1
        ) AS q ON true
        LEFT JOIN LATERAL (SELECT job.state FROM job WHERE job.id = q.job LIMIT 1) AS k ON true
        ORDER BY p.n
    ) AS f;
END
$$;
