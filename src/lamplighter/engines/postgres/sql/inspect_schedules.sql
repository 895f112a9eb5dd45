-- inspect_schedules: reads of schedules and their runs. Nothing here changes anything or takes a lock.
-- Every function is STABLE, as in inspect.sql, and what is searched is bounded.

-- seen_schedule: schedules as `schedules.py` reads them.
CREATE OR REPLACE VIEW seen_schedule AS
SELECT id, spec, tenant, type, version, cursor, due, created, changed, fired, skipped, failures,
       last_due, last_job, hold, backfill, zones, key
FROM schedule;

-- read_schedule: one schedule, if it is there. Index: the key of schedule.
CREATE OR REPLACE FUNCTION read_schedule(key_ text) RETURNS SETOF seen_schedule
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT * FROM seen_schedule WHERE seen_schedule.key = key_;
END
$$;

-- find_schedules: up to `want_` schedules that fit, by key, among the `scan_` that come next.
-- The last of those comes along even if it does not fit, for its place. Index: the key of schedule.
-- in   after_      the key before the first; NULL: none
--      stretch_    what keys begin with; none has more than 64 characters behind it
--      prefix_     what ids begin with
--      others      NULL is not asked for
-- out  the columns of a schedule, whether it fits, and how many were looked at
CREATE OR REPLACE FUNCTION find_schedules(
    after_ text, stretch_ text, prefix_ text, scan_ integer, want_ integer, types_ text[],
    held_ boolean, zones_not_ text
) RETURNS TABLE (
    id text, spec text, tenant text, type text, version bigint, cursor bigint, due bigint,
    created bigint, changed bigint, fired bigint, skipped bigint, failures bigint,
    last_due bigint, last_job uuid, hold text, backfill text, zones text, key text,
    fits boolean, looked bigint
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT stretch.*
    FROM (
        SELECT s.*,
               (types_ IS NULL OR s.type = ANY (types_))
               AND (held_ IS NULL OR held_ = (s.hold IS NOT NULL))
               AND (zones_not_ IS NULL OR s.zones <> zones_not_)
               AND starts_with(s.key, stretch_) AND starts_with(s.id, prefix_) AS fits,
               row_number() OVER (ORDER BY s.key) AS looked
        FROM (
            SELECT * FROM seen_schedule
            WHERE seen_schedule.key >= greatest(after_, stretch_ COLLATE "C")
              AND seen_schedule.key > coalesce(after_, '')
              AND seen_schedule.key <= stretch_ || repeat(chr(1114111), 64)
            ORDER BY seen_schedule.key
            LIMIT scan_
        ) AS s
    ) AS stretch
    WHERE stretch.fits OR stretch.looked = scan_
    ORDER BY stretch.key
    LIMIT want_
$$;

-- read_runs: runs of a schedule due before a time, the latest first, with when their jobs were handed
-- out, as far as these are still there. Index: the key of run; the keys of job and dead, done_id.
CREATE OR REPLACE FUNCTION read_runs(key_ text, before_ bigint, limit_ integer)
RETURNS TABLE (
    due bigint, kind text, state text, at bigint, job uuid, reason text, first bigint,
    number bigint, started bigint, finished bigint
)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT r.due, r.kind, r.state, r.at, r.made, r.reason, r.first, r.number,
               (SELECT any_job.claimed FROM any_job WHERE any_job.id = r.made), r.finished
        FROM (
            SELECT run.*,
                   -- A trigger that was skipped names the job that was not made.
                   CASE WHEN run.state <> 'skipped' OR run.reason = 'replaced' THEN run.job END
                       AS made
            FROM run
            WHERE run.schedule = key_ AND run.due < before_
            ORDER BY run.due DESC
            LIMIT limit_
        ) AS r
        ORDER BY r.due DESC;
END
$$;
