-- inspect: reads for people and programs that look. Nothing here changes anything or takes a lock.
--
-- A job moves from `job` to `done` or `dead` when it ends, so a read must see all three at one
-- moment. Every function here is STABLE: whatever it reads, it reads by the snapshot of the one
-- statement that calls it. For the same reason `now_` is given by that statement.
--
-- Whatever is counted or searched is bounded. The planner's settings, and an order where one index
-- of several is meant, keep each scan where it belongs, whatever the statistics say. A plan that
-- cannot do without what is switched off counts as very dear, and would be compiled: `jit` is off.

-- live_job, done_job, dead_job: the three homes of a job, in the same columns.
CREATE OR REPLACE VIEW live_job AS
SELECT @kept(job)@,
       @counts(job)@, state, cancel, NULL::bigint AS finished, NULL::text AS reason,
       NULL::bytea AS result, NULL::text AS result_note, error, fingerprint, hold, expires, started
FROM job;

CREATE OR REPLACE VIEW done_job AS
SELECT @ended@, NULL::text AS hold, NULL::bigint AS expires, NULL::integer AS started
FROM done;

CREATE OR REPLACE VIEW dead_job AS
SELECT @ended@, NULL::text AS hold, NULL::bigint AS expires, NULL::integer AS started
FROM dead;

CREATE OR REPLACE VIEW any_job AS
SELECT * FROM live_job UNION ALL SELECT * FROM done_job UNION ALL SELECT * FROM dead_job;

-- seen_job: jobs as `records.py` reads them, and behind that what the reads need themselves.
CREATE OR REPLACE VIEW seen_job AS
SELECT any_job.id, lane.type, any_job.args, lane.queue, lane.level, any_job.tenant, any_job.due,
       any_job.created, any_job.delivery, any_job.extras, any_job.attempt, any_job.crashes,
       any_job.losses, any_job.suspect, any_job.generation, any_job.cost, any_job.schedule,
       any_job.lease, any_job.nonce, any_job.worker, any_job.handout,
       any_job.state, any_job.hold, any_job.cancel, any_job.claimed, any_job.expires,
       any_job.finished, any_job.reason, any_job.result, any_job.result_note, any_job.error,
       progress.value AS progress,
       -- Whether its handler was called: by its start mark, or as the worker said last.
       CASE WHEN any_job.state <> 'running' THEN true
            WHEN any_job.delivery IS NOT NULL
            THEN any_job.started IS NOT DISTINCT FROM any_job.lease
            ELSE NOT EXISTS (SELECT FROM worker
                             WHERE worker.id = split_part(any_job.worker, '/', 1)
                               AND any_job.id = ANY (worker.unstarted))
       END AS started,
       any_job.seq, any_job.lane
FROM any_job
JOIN lane ON lane.id = any_job.lane
LEFT JOIN progress ON progress.job_id = any_job.id AND progress.lease = any_job.lease;

-- read_jobs: these jobs, in no order. Index: the keys of job and dead, done_id.
CREATE OR REPLACE FUNCTION read_jobs(ids_ uuid[]) RETURNS SETOF seen_job
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN QUERY
        SELECT seen_job.* FROM unnest(ids_) AS given(id) JOIN seen_job ON seen_job.id = given.id;
END
$$;

-- shown_status: what people are shown of a job, as `status_of` in model/job.py.
CREATE OR REPLACE FUNCTION shown_status(
    state_ text, due_ bigint, attempt_ integer, hold_ text, cancel_ text, now_ bigint
) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN state_ = 'running' THEN CASE WHEN cancel_ IS NULL THEN 'running' ELSE 'cancelling' END
        WHEN state_ <> 'waiting' THEN state_
        WHEN hold_ IS NOT NULL THEN 'paused'
        WHEN due_ <= now_ THEN 'ready'
        WHEN attempt_ > 0 THEN 'retrying'
        ELSE 'scheduled'
    END
$$;

-- has_tag: is this tag among the extras? Both are JSON, with all but ASCII written as \u….
-- Such escapes may stand for what PostgreSQL cannot hold, so they are made plain text on both
-- sides before anything is read. What cannot be read has no tag.
CREATE OR REPLACE FUNCTION has_tag(extras_ text, tag_ text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN strpos(extras_, tag_) > 0 AND (
        replace(replace(replace(extras_, '/', '//'), E'\\\\', '/b'), E'\\u', '/u')::jsonb -> 'tags'
        @> replace(replace(replace(tag_, '/', '//'), E'\\\\', '/b'), E'\\u', '/u')::jsonb);
EXCEPTION WHEN data_exception THEN
    RETURN false;
END
$$;

-- fits: the part of a filter that is not the status; NULL is not asked for.
CREATE OR REPLACE FUNCTION fits(
    type_ text, queue_ text, tenant_ text, schedule_ text, fingerprint_ text, extras_ text,
    created_ bigint, finished_ bigint,
    types_ text[], queues_ text[], tenants_ text[], schedules_ text[], fingerprints_ text[],
    tag_ text, since_ bigint, to_ bigint, after_ bigint, until_ bigint
) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT (types_ IS NULL OR type_ = ANY (types_))
       AND (queues_ IS NULL OR queue_ = ANY (queues_))
       AND (tenants_ IS NULL OR tenant_ = ANY (tenants_))
       AND (schedules_ IS NULL OR schedule_ = ANY (schedules_))
       AND (fingerprints_ IS NULL OR coalesce(fingerprint_, '') = ANY (fingerprints_))
       AND (since_ IS NULL OR created_ >= since_)
       AND (to_ IS NULL OR created_ < to_)
       AND (after_ IS NULL OR finished_ >= after_)
       AND (until_ IS NULL OR finished_ < until_)
       AND (tag_ IS NULL OR has_tag(extras_, tag_))
$$;

-- find_jobs: up to `want_` jobs that fit, newest first, among the `scan_` that come next.
-- The last of those comes along even if it does not fit, for its place. `more` says that the
-- search ended before the jobs did. Each kind is read by an index of its own, in the order of seq,
-- merged, and no further than needed: job_newest, job_held, done_succeeded, done_rest, dead_seq.
-- Only the running jobs are sorted: they are as many as there are slots.
CREATE OR REPLACE FUNCTION find_jobs(
    now_ bigint, before_ bigint, scan_ integer, want_ integer, statuses_ text[], types_ text[],
    queues_ text[], tenants_ text[], schedules_ text[], fingerprints_ text[], tag_ text,
    since_ bigint, to_ bigint, after_ bigint, until_ bigint,
    OUT ids uuid[], OUT more boolean
)
LANGUAGE sql STABLE @bounded@
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT array_agg(found.id), count(*) = want_ OR bool_or(found.looked = scan_)
    FROM (
        SELECT stretch.id, stretch.looked
        FROM (
            SELECT *, row_number() OVER (ORDER BY part.seq DESC) AS looked
            FROM (
                (SELECT * FROM live_job
                 WHERE seq < before_ AND seq > 0 AND state = 'waiting' AND hold IS NULL
                   AND (statuses_ IS NULL OR statuses_ && '{scheduled,ready,retrying}')
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM live_job
                 WHERE seq < before_
                   AND state <> 'running' AND (hold IS NOT NULL OR state = 'blocked')
                   AND (statuses_ IS NULL OR statuses_ && '{paused,blocked}')
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM (
                     SELECT * FROM live_job WHERE state = 'running' AND expires > 0 OFFSET 0
                 ) AS running
                 WHERE seq < before_
                   AND (statuses_ IS NULL OR statuses_ && '{running,cancelling}')
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM done_job
                 WHERE seq < before_ AND state = 'succeeded'
                   AND (statuses_ IS NULL OR 'succeeded' = ANY (statuses_))
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM done_job
                 WHERE seq < before_ AND state = 'cancelled'
                   AND (statuses_ IS NULL OR 'cancelled' = ANY (statuses_))
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM done_job
                 WHERE seq < before_ AND state = 'expired'
                   AND (statuses_ IS NULL OR 'expired' = ANY (statuses_))
                 ORDER BY seq DESC LIMIT scan_)
                UNION ALL
                (SELECT * FROM dead_job
                 WHERE seq < before_ AND (statuses_ IS NULL OR 'dead' = ANY (statuses_))
                 ORDER BY seq DESC LIMIT scan_)
            ) AS part
            ORDER BY part.seq DESC
            LIMIT scan_
        ) AS stretch
        JOIN lane ON lane.id = stretch.lane
        WHERE stretch.looked = scan_
           OR (fits(lane.type, lane.queue, stretch.tenant, stretch.schedule, stretch.fingerprint,
                    stretch.extras, stretch.created, stretch.finished, types_, queues_, tenants_,
                    schedules_, fingerprints_, tag_, since_, to_, after_, until_)
               AND (statuses_ IS NULL OR shown_status(
                        stretch.state, stretch.due, stretch.attempt, stretch.hold, stretch.cancel,
                        now_) = ANY (statuses_)))
        ORDER BY stretch.seq DESC
        LIMIT want_
    ) AS found
$$;

-- find_dead: the same for dead letters alone, last died first. Index: dead_finished.
CREATE OR REPLACE FUNCTION find_dead(
    finished_ bigint, before_ bigint, scan_ integer, want_ integer, types_ text[], queues_ text[],
    tenants_ text[], schedules_ text[], fingerprints_ text[], tag_ text, since_ bigint, to_ bigint,
    after_ bigint, until_ bigint,
    OUT ids uuid[], OUT more boolean
)
LANGUAGE sql STABLE @bounded@
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT array_agg(found.id), count(*) = want_ OR bool_or(found.looked = scan_)
    FROM (
        SELECT stretch.id, stretch.looked
        FROM (
            SELECT *, row_number() OVER (ORDER BY dead.finished DESC, dead.seq DESC) AS looked
            FROM dead
            WHERE dead.finished <= finished_ AND (dead.finished, dead.seq) < (finished_, before_)
            ORDER BY dead.finished DESC, dead.seq DESC
            LIMIT scan_
        ) AS stretch
        JOIN lane ON lane.id = stretch.lane
        WHERE stretch.looked = scan_
           OR fits(lane.type, lane.queue, stretch.tenant, stretch.schedule, stretch.fingerprint,
                   stretch.extras, stretch.created, stretch.finished, types_, queues_, tenants_,
                   schedules_, fingerprints_, tag_, since_, to_, after_, until_)
        ORDER BY stretch.finished DESC, stretch.seq DESC
        LIMIT want_
    ) AS found
$$;

-- read_dead_groups: the last `scan_` dead letters that fit, by cause, each with its newest.
CREATE OR REPLACE FUNCTION read_dead_groups(
    scan_ integer, types_ text[], queues_ text[], tenants_ text[], schedules_ text[],
    fingerprints_ text[], tag_ text, since_ bigint, to_ bigint, after_ bigint, until_ bigint
) RETURNS TABLE (
    fingerprint text, type text, queue text, error text, reason text, number bigint,
    newest bigint, example uuid
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT DISTINCT ON (lane.type, coalesce(stretch.fingerprint, ''))
           coalesce(stretch.fingerprint, ''), lane.type, lane.queue, stretch.error,
           stretch.reason,
           count(*) OVER (PARTITION BY lane.type, coalesce(stretch.fingerprint, '')),
           stretch.finished, stretch.id
    FROM (
        SELECT * FROM dead ORDER BY dead.finished DESC, dead.seq DESC LIMIT scan_
    ) AS stretch
    JOIN lane ON lane.id = stretch.lane
    WHERE fits(lane.type, lane.queue, stretch.tenant, stretch.schedule, stretch.fingerprint,
               stretch.extras, stretch.created, stretch.finished, types_, queues_, tenants_,
               schedules_, fingerprints_, tag_, since_, to_, after_, until_)
    ORDER BY lane.type, coalesce(stretch.fingerprint, ''), stretch.finished DESC, stretch.seq DESC
$$;

-- has_older_dead: whether there are dead letters behind the last `scan_`.
CREATE OR REPLACE FUNCTION has_older_dead(scan_ integer) RETURNS boolean
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT EXISTS (
        SELECT 1 FROM dead ORDER BY dead.finished DESC, dead.seq DESC LIMIT 1 OFFSET scan_
    )
$$;

-- read_attempts: the rows of history, and the job's own if it runs, or succeeded, in an attempt
-- without a row; newest first, up to a lease.
CREATE OR REPLACE FUNCTION read_attempts(id_ uuid, until_ bigint, limit_ integer)
RETURNS TABLE (
    job_id uuid, generation integer, lease integer, number integer, worker text, outcome text,
    started bigint, finished bigint, error text, nonce text
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off AS $$
    SELECT attempt.job_id, attempt.generation, attempt.lease, attempt.number, attempt.worker,
           attempt.outcome, attempt.started, attempt.finished, attempt.error, attempt.nonce
    FROM attempt
    WHERE attempt.job_id = id_ AND (until_ IS NULL OR attempt.lease <= until_)
    UNION ALL
    SELECT own.id, own.generation, own.lease, own.attempt + 1, own.worker, own.state, own.claimed,
           own.finished, NULL, own.nonce
    FROM any_job AS own
    WHERE own.id = id_ AND own.state IN ('running', 'succeeded')
      AND (until_ IS NULL OR own.lease <= until_)
    ORDER BY 2 DESC, 3 DESC
    LIMIT limit_
$$;

-- read_logs: pieces of a job's log behind a place, if the job is of that tenant.
CREATE OR REPLACE FUNCTION read_logs(
    id_ uuid, tenant_ text, lease_ bigint, number_ bigint, limit_ integer
) RETURNS TABLE (lease integer, number integer, data bytea)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off AS $$
    SELECT log.lease, log.number, log.data
    FROM log
    WHERE log.job_id = id_
      AND (log.lease, log.number) > (lease_, number_)
      AND (tenant_ IS NULL
           OR EXISTS (SELECT FROM any_job WHERE any_job.id = id_ AND any_job.tenant = tenant_))
    ORDER BY log.lease, log.number
    LIMIT limit_
$$;
