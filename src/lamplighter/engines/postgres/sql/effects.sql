-- What the actions of operators write about jobs, called by change and by what ends or removes jobs as
-- a part of something else. Lock: the jobs, held already; their queues too where they move.

-- cancel_jobs: end those of these jobs that wait, and ask those that run.
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
        RETURNING
            @kept(job)@, @counts(job)@,
            'cancelled' AS state, cancel_ AS cancel, now_ AS finished, reason_ AS reason,
            NULL::bytea AS result, NULL AS result_note, job.error, job.fingerprint,
            job.state = 'waiting' AND job.hold IS NULL AS stood
    ), @end(ended)@
    SELECT array_agg(e.lane) FILTER (WHERE e.stood), array_agg(e.tenant) FILTER (WHERE e.stood),
           array_agg(schedule_key(e.tenant, e.schedule)) FILTER (WHERE e.schedule IS NOT NULL),
           array_agg(e.id) FILTER (WHERE e.schedule IS NOT NULL)
    INTO left_lanes_, left_tenants_, schedules_, jobs_
    FROM ended AS e;
    IF left_lanes_ IS NOT NULL THEN
        PERFORM recount(left_lanes_, left_tenants_);
    END IF;
END
$$;

-- cancel_and_tell: the same, and the runs of those that have ended hear of it.
CREATE OR REPLACE FUNCTION cancel_and_tell(
    ids_ uuid[], cancel_ text, reason_ text, now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ended_ record := cancel_jobs(ids_, cancel_, reason_, now_);
BEGIN
    IF ended_.jobs_ IS NOT NULL THEN
        PERFORM end_runs(ended_.schedules_, ended_.jobs_,
                         array_fill('cancelled'::text, ARRAY[cardinality(ended_.jobs_)]), now_);
    END IF;
END
$$;

-- hold_jobs: take jobs out of their turns until they are unheld.
CREATE OR REPLACE FUNCTION hold_jobs(ids_ uuid[], mark_ text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    left_lanes_ integer[];
    left_tenants_ text[];
BEGIN
    WITH held AS (
        UPDATE job
        SET hold = mark_
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

-- free_jobs: let go of those of these jobs that are held, due when they were due.
CREATE OR REPLACE FUNCTION free_jobs(ids_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH free AS (
        UPDATE job
        SET hold = NULL
        WHERE job.id = ANY (ids_) AND job.hold IS NOT NULL
        RETURNING job.lane, job.tenant, job.due, job.seq, job.state, job.hold
    )
    @enter(free)@;
END
$$;

-- make_due: make waiting jobs due now.
-- It only gets earlier: the turn learns of its new place, and where it stood says nothing.
CREATE OR REPLACE FUNCTION make_due(ids_ uuid[], now_ bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH moved AS (
        UPDATE job
        SET due = now_
        WHERE job.id = ANY (ids_) AND job.state = 'waiting' AND job.due > now_
        RETURNING job.lane, job.tenant, job.due, job.seq, job.state, job.hold
    )
    @enter(moved)@;
END
$$;

-- run_again: let jobs that have ended run again with the same id and sequence number, `lives_`
-- generations later: 1 for a replay, 0 for the retry of dead jobs, whose progress stays to be seen.
-- The lease number goes on growing.
CREATE OR REPLACE FUNCTION run_again(ids_ uuid[], now_ bigint, lives_ integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    lanes_ integer[];
    sisters_ integer[];
    schedules_ text[];
    resumed_ uuid[];
BEGIN
    PERFORM lock_schedules(ARRAY(
        SELECT schedule_key(found.tenant, found.schedule) FROM whereabouts(ids_) AS found
        WHERE found.schedule IS NOT NULL));
    -- A suspect is none when it runs again, and any version may take it.
    lanes_ := ARRAY(SELECT DISTINCT found.lane FROM whereabouts(ids_) AS found
                    WHERE found.lane IS NOT NULL);
    IF cardinality(lanes_) > 0 THEN
        sisters_ := sister_lanes(lanes_, NULL, NULL);
    END IF;
    WITH finished AS (
        DELETE FROM done WHERE done.id = ANY (ids_) RETURNING done.*
    ), buried AS (
        DELETE FROM dead WHERE dead.id = ANY (ids_) RETURNING dead.*
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
        DELETE FROM progress USING ended AS e WHERE progress.job_id = e.id AND lives_ > 0
    ), again AS (
        INSERT INTO job (seq, id, lane, tenant, state, due, created, args, extras, delivery, cost,
                         size, schedule, generation, lease, nonce)
        SELECT e.seq, e.id, coalesce(sisters_[array_position(lanes_, e.lane)], e.lane), e.tenant,
               'waiting', now_, e.created, e.args, e.extras,
               e.delivery, e.cost, e.size, e.schedule, e.generation + lives_, e.lease, e.nonce
        FROM ended AS e
        RETURNING job.id, job.lane, job.tenant, job.due, job.seq, job.state, job.hold, job.schedule
    ), told AS (
        @enter(again)@
    )
    SELECT array_agg(schedule_key(again.tenant, again.schedule))
               FILTER (WHERE again.schedule IS NOT NULL),
           array_agg(again.id) FILTER (WHERE again.schedule IS NOT NULL)
    INTO schedules_, resumed_
    FROM again;
    IF resumed_ IS NOT NULL THEN
        PERFORM resume_runs(schedules_, resumed_);
    END IF;
END
$$;

-- remove_keys: remove the idempotency keys of jobs that have ended. A key is as old as its job.
-- Index: done_id, the key of dead, idempotency_age.
CREATE OR REPLACE FUNCTION remove_keys(ids_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM idempotency
    USING (
        SELECT done.id, done.created FROM done WHERE done.id = ANY (ids_)
        UNION ALL
        SELECT dead.id, dead.created FROM dead WHERE dead.id = ANY (ids_)
    ) AS ended
    WHERE idempotency.created = ended.created AND idempotency.job_id = ended.id;
END
$$;

-- remove_jobs: remove terminal jobs with all that is kept about them; returns those that were there.
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
