-- fire: write plans for schedules, each wholly or not at all. Guard: version and cursor.
-- Lock: jobs that may be unheld or cancelled (the latter after their queues), then the schedules.
-- Index: the keys of schedule, run and job; run_queued, run_good, run_rest.
-- Functions without settings of their own are called only by those that have them.
--
-- in   ids … run_counts    one per plan, the first the key of its schedule, none twice. Without versions
--                          the runs are wishes, and all that plans set stays as it is
--      skip_of … counts    one per skip; the first is the place of its plan
--      run_of … overlaps   one per run, plan by plan; the first is the place of its plan
--      jobs                their jobs: see submit
--      cancel, why         who cancels what is in the way, as JSON, and why
-- out  one row with places of plans that are stale; of runs that did not become a new job that may run,
--      and what became of them; of plans for which a queued job was started, and which; of plans with
--      something skipped, and how much
CREATE OR REPLACE FUNCTION fire(
    call_ fire_call,
    OUT stale bigint[], OUT odd bigint[], OUT fates text[],
    OUT started_of bigint[], OUT started uuid[], OUT skipped_of bigint[], OUT skipped bigint[]
)
LANGUAGE plpgsql @planned@ AS $$
DECLARE
    now_ bigint;
    found_ record;
    noted_ record;
    judged_ record;
    fates_ text[];
    skips_ bigint[];
    rows_ bigint[];
    fresh_ uuid[];
    replaced_ uuid[] := '{}';
    starting_ uuid[];
BEGIN
    PERFORM lock_plans(call_.ids, ARRAY(
        SELECT DISTINCT call_.ids[r.of] FROM unnest(call_.run_of, call_.overlaps) AS r(of, overlap)
        WHERE r.overlap = 'cancel_running'));
    now_ := now_ms();
    found_ := read_plans(call_.ids, call_.versions, call_.cursors);
    IF found_.starting_ THEN
        UPDATE run SET state = 'started'
        FROM unnest(call_.ids, found_.first_dues_) AS p(id, due)
        WHERE run.schedule = p.id AND run.due = p.due;
    END IF;
    noted_ := note_skips(call_, found_.counted_, now_);
    judged_ := judge(call_, found_.counted_, found_.states_, found_.queued_, found_.actives_,
                     noted_.skips_, noted_.rows_, noted_.lasts_);
    fates_ := judged_.fates_;
    skips_ := judged_.skips_;
    rows_ := judged_.rows_;
    IF cardinality(judged_.replaced_) > 0 THEN
        SELECT r.skips_, r.rows_, r.jobs_ INTO skips_, rows_, replaced_
        FROM replace_queued(call_.ids, judged_.replaced_, skips_, rows_) AS r;
    END IF;
    IF cardinality(call_.run_of) > 0 THEN
        fresh_ := make_jobs(call_, fates_, now_);
        fates_ := write_runs(call_, fates_, fresh_, now_);
        IF 'backfill' = ANY (call_.kinds) THEN
            call_.backfills := count_made(call_.backfills, call_.run_of, call_.kinds, fates_);
        END IF;
    END IF;
    PERFORM cancel_in_the_way(judged_.cancels_, replaced_, call_, fates_, now_);
    IF found_.starting_ THEN
        starting_ := ARRAY(
            SELECT CASE WHEN f.job NOT IN (SELECT unnest(judged_.cancels_)) THEN f.job END
            FROM unnest(found_.first_jobs_) WITH ORDINALITY AS f(job, n)
            ORDER BY f.n);
        PERFORM free_jobs(starting_);
    END IF;
    PERFORM write_schedules(call_, found_.counted_, found_.goods_, found_.rests_, judged_.actives_,
                            judged_.agains_, judged_.fireds_, skips_, rows_, judged_.lasts_,
                            judged_.mades_, now_);
    SELECT array_agg(p.n) FILTER (WHERE NOT p.counted),
           array_agg(p.n) FILTER (WHERE p.first IS NOT NULL),
           array_agg(p.first) FILTER (WHERE p.first IS NOT NULL),
           array_agg(p.n) FILTER (WHERE p.skipped > 0),
           array_agg(p.skipped) FILTER (WHERE p.skipped > 0)
    INTO stale, started_of, started, skipped_of, skipped
    FROM unnest(found_.counted_, starting_, skips_)
         WITH ORDINALITY AS p(counted, first, skipped, n);
    SELECT array_agg(r.n), array_agg(coalesce(r.fate, 'none')) INTO odd, fates
    FROM unnest(fates_) WITH ORDINALITY AS r(fate, n)
    WHERE r.fate IS DISTINCT FROM 'started';
END
$$;

-- note_skips: note what is skipped, except what is noted already. Index: the key of run, run_rest.
-- out  per plan: how many occurrences that are, in how many rows, and when the last was due
CREATE OR REPLACE FUNCTION note_skips(
    call_ fire_call, counted_ boolean[], now_ bigint,
    OUT skips_ bigint[], OUT rows_ bigint[], OUT lasts_ bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    noted_ boolean[];
    before_ integer := 0;
    skip_ record;
BEGIN
    skips_ := array_fill(0::bigint, ARRAY[cardinality(call_.ids)]);
    rows_ := skips_;
    lasts_ := array_fill(NULL::bigint, ARRAY[cardinality(call_.ids)]);
    IF call_.skip_of IS NULL THEN
        RETURN;
    END IF;
    noted_ := array_fill(false, ARRAY[cardinality(call_.skip_of)]);
    FOR skip_ IN
        SELECT s.n, s.of, s.due, s.first, s.number
        FROM unnest(call_.skip_of, call_.skip_dues, call_.firsts, call_.counts)
             WITH ORDINALITY AS s(of, due, first, number, n)
        WHERE counted_[s.of]
          AND NOT EXISTS (SELECT FROM run WHERE run.schedule = call_.ids[s.of] AND run.due = s.due)
          AND NOT EXISTS (
              SELECT FROM run
              WHERE run.schedule = call_.ids[s.of]
                AND run.state <> 'queued' AND run.state <> 'started' AND run.state <> 'succeeded'
                AND run.due >= s.due
                AND run.first <= s.first)
        ORDER BY s.n
    LOOP
        -- The one before it, of the same plan, may cover it as well.
        CONTINUE WHEN skip_.of = before_ AND skip_.due <= lasts_[before_];
        before_ := skip_.of;
        noted_[skip_.n] := true;
        skips_[before_] := skips_[before_] + coalesce(skip_.number, 1);
        rows_[before_] := rows_[before_] + 1;
        lasts_[before_] := skip_.due;
    END LOOP;
    INSERT INTO run (schedule, due, kind, state, at, reason, first, number)
    SELECT call_.ids[s.of], s.due, 'due', 'skipped', now_, s.reason, s.first, s.number
    FROM unnest(call_.skip_of, call_.skip_dues, call_.firsts, call_.reasons, call_.counts, noted_)
         AS s(of, due, first, reason, number, noted)
    WHERE s.noted;
END
$$;

-- replace_queued: the queued runs of these plans' schedules are skipped; gives their jobs.
CREATE OR REPLACE FUNCTION replace_queued(
    ids_ text[], plans_ integer[], INOUT skips_ bigint[], INOUT rows_ bigint[], OUT jobs_ uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    plan_ integer;
    some_ uuid[];
BEGIN
    jobs_ := '{}';
    FOREACH plan_ IN ARRAY plans_ LOOP
        WITH replaced AS (
            UPDATE run SET state = 'skipped', reason = 'replaced'
            WHERE run.schedule = ids_[plan_] AND run.state = 'queued'
            RETURNING run.job
        )
        SELECT coalesce(array_agg(replaced.job), '{}') INTO some_ FROM replaced;
        jobs_ := jobs_ || some_;
        skips_[plan_] := skips_[plan_] + cardinality(some_);
        rows_[plan_] := rows_[plan_] + cardinality(some_);
    END LOOP;
END
$$;

-- make_jobs: store the jobs of runs that get one, as submit does; gives those that are new.
-- What is queued is held; so is what is cancelled before anybody could see it.
CREATE OR REPLACE FUNCTION make_jobs(call_ fire_call, fates_ text[], now_ bigint) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ CONSTANT job_batch := call_.jobs;
    known_ bigint[];
    holds_ boolean[];
    schedules_ text[];
    fresh_ uuid[];
    ended_ uuid[];
BEGIN
    SELECT array_agg(r.n) FILTER (WHERE r.fate IS NULL OR r.fate IN ('overlap', 'queue_full')),
           array_agg(coalesce(r.held, false) OR r.fate IN ('queued', 'cancelled', 'replaced')),
           array_agg(schedule_id(call_.ids[r.of]))
    INTO known_, holds_, schedules_
    FROM unnest(call_.run_of, fates_, jobs_.held) WITH ORDINALITY AS r(of, fate, held, n);
    IF cardinality(known_) = cardinality(jobs_.ids) THEN
        RETURN '{}';
    END IF;
    fresh_ := insert_jobs(
        jobs_.ids, lanes_of(jobs_.queues, jobs_.levels, jobs_.types, jobs_.requirements),
        jobs_.lane_of, jobs_.tenants, jobs_.starts, jobs_.sizes, jobs_.args, jobs_.delays,
        jobs_.instants, jobs_.extras, jobs_.deliveries, jobs_.costs, schedules_, holds_,
        mark_at(jobs_.mark, now_), known_, now_);
    -- Only now: see submit.
    ended_ := ended_of(fresh_);
    IF ended_ IS NOT NULL THEN
        fresh_ := ARRAY(SELECT unnest(fresh_) EXCEPT SELECT unnest(ended_));
        PERFORM take_back(ended_, fresh_);
    END IF;
    RETURN fresh_;
END
$$;

-- write_runs: note what became of occurrences. Gives the fates, in which a job that was there before
-- is `there`; its run is what became of it.
CREATE OR REPLACE FUNCTION write_runs(
    call_ fire_call, fates_ text[], fresh_ uuid[], now_ bigint
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ CONSTANT uuid[] := (call_.jobs).ids;
    wanted_ bigint;
BEGIN
    IF 'backfill' = ANY (call_.kinds) THEN
        -- It runs what was skipped.
        DELETE FROM run
        USING unnest(call_.run_of, call_.run_dues, call_.kinds, fates_) AS r(of, due, kind, fate)
        WHERE r.kind = 'backfill' AND r.fate IS NOT NULL
          AND run.schedule = call_.ids[r.of] AND run.due = r.due;
    END IF;
    INSERT INTO run (schedule, due, kind, state, at, job, reason, number)
    SELECT call_.ids[r.of], r.due, r.kind,
           CASE WHEN f.skipped THEN 'skipped' WHEN r.fate = 'cancelled' THEN 'started'
                ELSE r.fate END,
           now_,
           -- Who triggers it again has to be told the same.
           CASE WHEN r.kind = 'trigger' OR r.fate NOT IN ('overlap', 'queue_full') THEN r.job END,
           CASE WHEN f.skipped THEN r.fate END,
           1
    FROM unnest(call_.run_of, call_.run_dues, call_.kinds, fates_, jobs_) AS r(of, due, kind, fate, job)
    CROSS JOIN LATERAL (
        SELECT r.fate IN ('overlap', 'queue_full', 'replaced') AS skipped
    ) AS f
    WHERE r.fate IS NOT NULL;
    SELECT count(*) INTO wanted_
    FROM unnest(fates_) AS r(fate)
    WHERE r.fate NOT IN ('overlap', 'queue_full');
    IF cardinality(fresh_) = wanted_ THEN
        RETURN fates_;
    END IF;
    fates_ := ARRAY(
        SELECT CASE WHEN r.fate IN ('overlap', 'queue_full') THEN r.fate
                    WHEN r.job IN (SELECT unnest(fresh_)) THEN r.fate
                    WHEN r.fate IS NOT NULL THEN 'there' END
        FROM unnest(fates_, jobs_) WITH ORDINALITY AS r(fate, job, n)
        ORDER BY r.n);
    PERFORM adopt_ended(ARRAY(
        SELECT r.job FROM unnest(fates_, jobs_) AS r(fate, job) WHERE r.fate = 'there'));
    RETURN fates_;
END
$$;

-- adopt_ended: give new runs of jobs that ended before them the ends of these jobs.
CREATE OR REPLACE FUNCTION adopt_ended(jobs_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT r.place, r.schedule, e.state, e.finished
        FROM unnest(jobs_) AS u(job)
        CROSS JOIN LATERAL (
            SELECT done.state, done.finished FROM done WHERE done.id = u.job
            UNION ALL
            SELECT dead.state, dead.finished FROM dead WHERE dead.id = u.job
            LIMIT 1
        ) AS e
        CROSS JOIN LATERAL (
            SELECT run.ctid AS place, run.schedule
            FROM run
            WHERE run.job = u.job AND run.state IN ('queued', 'started')
            LIMIT 1
        ) AS r
    ), written AS (
        UPDATE run SET state = ended.state, finished = ended.finished
        FROM ended
        WHERE run.ctid = ended.place
    ), sums AS MATERIALIZED (
        SELECT ended.schedule, sum(is_good(ended.state)) AS good, sum(is_rest(ended.state)) AS rest
        FROM ended
        GROUP BY ended.schedule
    )
    UPDATE schedule
    SET good = schedule.good + sums.good, rest = schedule.rest + sums.rest
    FROM sums
    WHERE schedule.key = sums.schedule;
END
$$;

-- cancel_in_the_way: cancel jobs for which others are started or queued. Lock: held already; those
-- that were made just now are held, and nobody has seen them.
CREATE OR REPLACE FUNCTION cancel_in_the_way(
    cancels_ uuid[], replaced_ uuid[], call_ fire_call, fates_ text[], now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ CONSTANT uuid[] := (call_.jobs).ids;
    mark_ text;
BEGIN
    cancels_ := cancels_ || ARRAY(
        SELECT r.job FROM unnest(fates_, jobs_) AS r(fate, job) WHERE r.fate = 'cancelled');
    replaced_ := replaced_ || ARRAY(
        SELECT r.job FROM unnest(fates_, jobs_) AS r(fate, job) WHERE r.fate = 'replaced');
    IF cardinality(cancels_) + cardinality(replaced_) = 0 THEN
        RETURN;
    END IF;
    mark_ := mark_at(call_.cancel, now_);
    PERFORM cancel_jobs(replaced_, mark_, call_.why, now_);
    PERFORM cancel_and_tell(cancels_, mark_, call_.why, now_);
END
$$;

-- write_schedules: write what plans say of their schedules and what came of them, and remove the
-- earliest of the runs beyond what is kept. Index: run_good, run_rest.
-- in   kept_goods_, kept_rests_  how many runs there were
CREATE OR REPLACE FUNCTION write_schedules(
    call_ fire_call, counted_ boolean[], kept_goods_ bigint[], kept_rests_ bigint[],
    actives_ uuid[], agains_ boolean[], fireds_ bigint[], skips_ bigint[], rows_ bigint[],
    lasts_ bigint[], mades_ uuid[], now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    planned_ CONSTANT boolean := call_.versions IS NOT NULL;
    less_good_ bigint[];
    less_rest_ bigint[];
BEGIN
    SELECT array_agg(least(greatest(p.kept_good - p.good, 0), 500)),
           array_agg(least(greatest(p.kept_rest + p.more - p.rest, 0), 500))
    INTO less_good_, less_rest_
    FROM unnest(kept_goods_, call_.goods, kept_rests_, rows_, call_.rests)
         AS p(kept_good, good, kept_rest, more, rest);
    PERFORM drop_runs(call_.ids, less_good_, less_rest_);
    UPDATE schedule
    SET version = schedule.version + CASE
            -- These move no cursor, and an older plan must not set them back.
            WHEN planned_ AND (p.backfill IS DISTINCT FROM schedule.backfill
                               OR p.hold IS NOT NULL AND schedule.hold IS NULL) THEN 1
            ELSE 0 END,
        cursor = coalesce(p.next, schedule.cursor),
        due = CASE WHEN planned_ THEN p.due ELSE schedule.due END,
        wake = CASE WHEN p.again THEN now_
                    WHEN NOT planned_ THEN schedule.wake
                    ELSE wake_at(p.due, now_) END,
        hold = CASE WHEN p.hold IS NULL OR schedule.hold IS NOT NULL THEN schedule.hold
                    ELSE mark_at(p.hold, now_) END,
        backfill = CASE WHEN planned_ THEN p.backfill ELSE schedule.backfill END,
        zones = coalesce(p.zones, schedule.zones),
        active = p.active,
        fired = schedule.fired + p.fired,
        skipped = schedule.skipped + p.skipped,
        good = schedule.good - p.less_good,
        rest = schedule.rest + p.more - p.less_rest,
        last_due = greatest(schedule.last_due, p.last),
        last_job = coalesce(p.made, schedule.last_job)
    FROM unnest(call_.ids, counted_, call_.nexts, call_.dues, call_.holds, call_.backfills,
                call_.zones, actives_, agains_,
                fireds_, skips_, rows_, lasts_, mades_, less_good_, less_rest_)
         AS p(id, counted, next, due, hold, backfill, zones, active, again, fired, skipped, more,
              last, made, less_good, less_rest)
    WHERE p.counted AND schedule.key = p.id;
END
$$;

-- count_made: where backfills stand, with the jobs that were made for them now. As text, not as JSON:
-- what did not change has to stay the same to the letter.
CREATE OR REPLACE FUNCTION count_made(
    backfills_ text[], run_of_ integer[], kinds_ text[], fates_ text[]
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    plan_ record;
BEGIN
    FOR plan_ IN
        SELECT r.of, count(*) AS made
        FROM unnest(run_of_, kinds_, fates_) AS r(of, kind, fate)
        WHERE r.kind = 'backfill' AND r.fate = 'started' AND backfills_[r.of] IS NOT NULL
        GROUP BY r.of
    LOOP
        backfills_[plan_.of] := regexp_replace(
            backfills_[plan_.of], '"made": [0-9]+',
            '"made": ' || ((backfills_[plan_.of]::jsonb ->> 'made')::bigint + plan_.made));
    END LOOP;
    RETURN backfills_;
END
$$;

-- drop_runs: remove so many of the runs that succeeded, and of the others that have ended, of each
-- schedule, the earliest due first.
CREATE OR REPLACE FUNCTION drop_runs(ids_ text[], good_ bigint[], rest_ bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM run
    WHERE run.ctid = ANY (ARRAY(
        SELECT old.place
        FROM unnest(ids_, good_) AS p(id, less)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS place FROM run
            WHERE run.schedule = p.id AND run.state = 'succeeded'
            ORDER BY run.due LIMIT p.less
        ) AS old
        WHERE p.less > 0
        UNION ALL
        SELECT old.place
        FROM unnest(ids_, rest_) AS p(id, less)
        CROSS JOIN LATERAL (
            SELECT run.ctid AS place FROM run
            WHERE run.schedule = p.id
              AND run.state <> 'queued' AND run.state <> 'started' AND run.state <> 'succeeded'
            ORDER BY run.due LIMIT p.less
        ) AS old
        WHERE p.less > 0));
END
$$;
