-- What several verbs do to schedules and their runs, called only by them.
--
-- Locks are taken in this order: queues, jobs by their ids, schedules by theirs. Runs have none of
-- their own: who writes a run has locked its schedule. Index: the keys, run_job.

-- lock_schedules: lock these schedules, always in the same order, until the transaction ends.
CREATE OR REPLACE FUNCTION lock_schedules(keys_ text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM schedule WHERE schedule.key = ANY (keys_) ORDER BY schedule.key FOR UPDATE;
END
$$;

-- schedule_key, schedule_keys: what identifies schedules, in the order of the ids; see `key` of schedule.
CREATE OR REPLACE FUNCTION schedule_key(tenant_ text, id_ text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT tenant_ || E'\x01' || id_
$$;

CREATE OR REPLACE FUNCTION schedule_keys(ids_ text[], tenant_ text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT schedule_key(tenant_, u.id) FROM unnest(ids_) WITH ORDINALITY AS u(id, n)
        ORDER BY u.n);
END
$$;

-- schedule_id: the id in a key.
CREATE OR REPLACE FUNCTION schedule_id(key_ text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(key_, strpos(key_, E'\x01') + 1)
$$;

-- end_runs: let schedules know that jobs of theirs have ended, in this order. Lock: the schedules.
-- A schedule that is gone, or a job that no run names, is passed over.
CREATE OR REPLACE FUNCTION end_runs(
    schedules_ text[], jobs_ uuid[], states_ text[], finished_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    now_ bigint;
BEGIN
    PERFORM lock_schedules(schedules_);
    -- Only now: whoever looks for what is due must not have looked beyond it already.
    now_ := now_ms();
    WITH ended AS MATERIALIZED (
        SELECT r.place, r.schedule, r.state AS before, u.state, u.n,
               max(u.n) FILTER (WHERE u.state = 'succeeded') OVER (PARTITION BY r.schedule) AS good
        FROM unnest(schedules_, jobs_, states_) WITH ORDINALITY AS u(schedule, job, state, n)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS place, run.schedule, run.state
            FROM run
            WHERE run.job = u.job AND run.schedule = u.schedule
            LIMIT 1
        ) AS r
    ), written AS (
        UPDATE run
        SET state = ended.state, finished = finished_, reason = NULL
        FROM ended
        WHERE run.ctid = ended.place
    ), sums AS MATERIALIZED (
        SELECT ended.schedule,
               bool_or(ended.state = 'succeeded') AS succeeded,
               bool_and(ended.state = 'succeeded') AS all_succeeded,
               count(*) FILTER (WHERE ended.state = 'dead' AND ended.n > coalesce(ended.good, 0))
                   AS dead,
               sum(is_good(ended.state) - is_good(ended.before)) AS good,
               sum(is_rest(ended.state) - is_rest(ended.before)) AS rest
        FROM ended
        GROUP BY ended.schedule
    )
    UPDATE schedule
    SET failures = CASE WHEN sums.succeeded THEN 0 ELSE schedule.failures END + sums.dead,
        good = schedule.good + sums.good,
        rest = schedule.rest + sums.rest,
        wake = CASE
            -- Nothing follows from these; and what no index has is written in its place.
            WHEN sums.all_succeeded AND schedule.backfill IS NULL AND NOT EXISTS (
                SELECT FROM run WHERE run.schedule = schedule.key AND run.state = 'queued'
            ) THEN schedule.wake
            ELSE least(schedule.wake, now_) END
    FROM sums
    WHERE schedule.key = sums.schedule;
END
$$;

-- resume_runs: let the runs of jobs that run again be going on again. Lock: the schedules, held already.
CREATE OR REPLACE FUNCTION resume_runs(schedules_ text[], jobs_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH resumed AS MATERIALIZED (
        SELECT r.place, r.schedule, r.state AS before
        FROM unnest(schedules_, jobs_) AS u(schedule, job)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS place, run.schedule, run.state
            FROM run
            WHERE run.job = u.job AND run.schedule = u.schedule
            LIMIT 1
        ) AS r
    ), written AS (
        UPDATE run
        SET state = 'started', finished = NULL, reason = NULL
        FROM resumed
        WHERE run.ctid = resumed.place
    ), sums AS MATERIALIZED (
        SELECT resumed.schedule, sum(is_good(resumed.before)) AS good,
               sum(is_rest(resumed.before)) AS rest
        FROM resumed
        GROUP BY resumed.schedule
    )
    UPDATE schedule
    SET good = schedule.good - sums.good, rest = schedule.rest - sums.rest
    FROM sums
    WHERE schedule.key = sums.schedule;
END
$$;

-- is_good, is_rest: 1 for a run in this state that counts as succeeded, or as ended otherwise.
CREATE OR REPLACE FUNCTION is_good(state_ text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state_ = 'succeeded' THEN 1 ELSE 0 END
$$;

CREATE OR REPLACE FUNCTION is_rest(state_ text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state_ IN ('queued', 'started', 'succeeded') THEN 0 ELSE 1 END
$$;
