-- fire: write plans for schedules, each wholly or not at all. Guard: version and cursor.
-- Lock: jobs that may be unheld or cancelled (the latter after their queues), then the schedules.
-- Index: the keys of schedule, run and job; run_queued, run_backfill, run_good, run_rest.
-- Functions without settings of their own are called only by those that have them.
--
-- in   ids_ … run_counts_   one per plan, no schedule twice. Without versions the runs are wishes, and
--                           all that plans set stays as it is
--      skip_of_ … counts_   one per skip; the first is the place of its plan
--      run_of_ … overlaps_  one per run, plan by plan; the first is the place of its plan
--      queues_ … mark_      their jobs: see submit
--      cancel_, why_        who cancels what is in the way, as JSON, and why
-- out  one row with places of plans that are stale; of runs that did not become a new job that may run,
--      and what became of them; of plans for which a queued job was started, and which; of plans with
--      something skipped, and how much
CREATE OR REPLACE FUNCTION fire(
    ids_ text[], versions_ bigint[], cursors_ bigint[], nexts_ bigint[], dues_ bigint[],
    holds_ text[], backfills_ text[], zones_ text[], goods_ bigint[], rests_ bigint[],
    run_counts_ integer[],
    skip_of_ integer[], skip_dues_ bigint[], firsts_ bigint[], reasons_ text[], counts_ bigint[],
    run_of_ integer[], run_dues_ bigint[], kinds_ text[], overlaps_ text[],
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[],
    jobs_ uuid[], lane_of_ integer[], tenants_ text[],
    starts_ integer[], sizes_ integer[], args_ bytea,
    delays_ bigint[], instants_ bigint[], extras_ text[], deliveries_ text[], costs_ integer[],
    held_ boolean[], mark_ text, cancel_ text, why_ text,
    OUT stale bigint[], OUT odd bigint[], OUT fates text[],
    OUT started_of bigint[], OUT started uuid[], OUT skipped_of bigint[], OUT skipped bigint[]
)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
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
    PERFORM lock_plans(ids_, ARRAY(
        SELECT DISTINCT ids_[r.of] FROM unnest(run_of_, overlaps_) AS r(of, overlap)
        WHERE r.overlap = 'cancel_running'));
    now_ := now_ms();
    found_ := read_plans(ids_, versions_, cursors_);
    IF found_.starting_ THEN
        UPDATE run SET state = 'started'
        FROM unnest(ids_, found_.first_dues_) AS p(id, due)
        WHERE run.schedule = p.id AND run.due = p.due;
    END IF;
    noted_ := note_skips(ids_, found_.counted_, skip_of_, skip_dues_, firsts_, reasons_, counts_,
                         now_);
    judged_ := judge(ids_, found_.counted_, run_counts_, run_of_, run_dues_, kinds_, overlaps_,
                     jobs_, found_.states_, found_.queued_, found_.actives_, noted_.skips_,
                     noted_.rows_, noted_.lasts_);
    fates_ := judged_.fates_;
    skips_ := judged_.skips_;
    rows_ := judged_.rows_;
    IF cardinality(judged_.replaced_) > 0 THEN
        SELECT r.skips_, r.rows_, r.jobs_ INTO skips_, rows_, replaced_
        FROM replace_queued(ids_, judged_.replaced_, skips_, rows_) AS r;
    END IF;
    IF cardinality(run_of_) > 0 THEN
        fresh_ := make_jobs(fates_, ids_, run_of_, queues_, levels_, types_, requirements_, jobs_,
                            lane_of_, tenants_, starts_, sizes_, args_, delays_, instants_,
                            extras_, deliveries_, costs_, held_, mark_, now_);
        fates_ := write_runs(fates_, ids_, run_of_, run_dues_, kinds_, jobs_, fresh_, now_);
    END IF;
    PERFORM cancel_in_the_way(judged_.cancels_, replaced_, fates_, jobs_, cancel_, why_, now_);
    IF found_.starting_ THEN
        starting_ := ARRAY(
            SELECT CASE WHEN f.job NOT IN (SELECT unnest(judged_.cancels_)) THEN f.job END
            FROM unnest(found_.first_jobs_) WITH ORDINALITY AS f(job, n)
            ORDER BY f.n);
        PERFORM free_jobs(starting_);
    END IF;
    PERFORM write_schedules(ids_, found_.counted_, versions_ IS NOT NULL, nexts_, dues_, holds_,
                            backfills_, zones_, goods_, rests_, found_.goods_, found_.rests_,
                            judged_.actives_, judged_.agains_, judged_.fireds_, skips_, rows_,
                            judged_.lasts_, judged_.mades_, now_);
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
        PERFORM lock_jobs(jobs_);
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
            WHERE schedule.id = ANY (cancelling_) AND schedule.active IS NOT NULL);
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
            WHERE schedule.id = p.id
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

-- note_skips: note what is skipped, except what is noted already. Index: the key of run, run_rest.
-- out  per plan: how many occurrences that are, in how many rows, and when the last was due
CREATE OR REPLACE FUNCTION note_skips(
    ids_ text[], counted_ boolean[], skip_of_ integer[], skip_dues_ bigint[], firsts_ bigint[],
    reasons_ text[], counts_ bigint[], now_ bigint,
    OUT skips_ bigint[], OUT rows_ bigint[], OUT lasts_ bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    noted_ boolean[];
    before_ integer := 0;
    skip_ record;
BEGIN
    skips_ := array_fill(0::bigint, ARRAY[cardinality(ids_)]);
    rows_ := skips_;
    lasts_ := array_fill(NULL::bigint, ARRAY[cardinality(ids_)]);
    IF skip_of_ IS NULL THEN
        RETURN;
    END IF;
    noted_ := array_fill(false, ARRAY[cardinality(skip_of_)]);
    FOR skip_ IN
        SELECT s.n, s.of, s.due, s.first, s.number
        FROM unnest(skip_of_, skip_dues_, firsts_, counts_)
             WITH ORDINALITY AS s(of, due, first, number, n)
        WHERE counted_[s.of]
          AND NOT EXISTS (SELECT FROM run WHERE run.schedule = ids_[s.of] AND run.due = s.due)
          AND NOT EXISTS (
              SELECT FROM run
              WHERE run.schedule = ids_[s.of]
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
    SELECT ids_[s.of], s.due, 'due', 'skipped', now_, s.reason, s.first, s.number
    FROM unnest(skip_of_, skip_dues_, firsts_, reasons_, counts_, noted_)
         AS s(of, due, first, reason, number, noted)
    WHERE s.noted;
END
$$;

-- fate_of: what becomes of a run of this kind, with this wish about overlaps, while the active job is in
-- this state (NULL: over) and so many are queued. What cancels is queued, after it has cancelled.
CREATE OR REPLACE FUNCTION fate_of(kind_ text, overlap_ text, state_ text, queued_ bigint)
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state_ IS NULL OR kind_ = 'backfill' OR overlap_ = 'allow' THEN 'started'
                WHEN overlap_ = 'skip' THEN 'overlap'
                WHEN overlap_ = 'queue_one' AND queued_ > 0 THEN 'queue_full'
                ELSE 'queued' END
$$;

-- is_free: whether an occurrence can have a run of this kind, if it has one in this state (NULL: none).
-- What was skipped can be run later by a backfill.
CREATE OR REPLACE FUNCTION is_free(state_ text, kind_ text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT state_ IS NULL OR (state_ = 'skipped' AND kind_ = 'backfill')
$$;

-- judge_alone: decide about the runs of plans that have only one, which cancels nothing: those are
-- nearly all. Lists have one entry per plan. Reads which occurrences have a run; writes nothing.
-- out  judged_           whether the plan needs no other judge
--      plan_fates_       see judge, as for the rest
CREATE OR REPLACE FUNCTION judge_alone(
    ids_ text[], counted_ boolean[], run_counts_ integer[], run_dues_ bigint[], kinds_ text[],
    overlaps_ text[], jobs_ uuid[], states_ text[], queued_ bigint[],
    INOUT actives_ uuid[], INOUT skips_ bigint[], INOUT rows_ bigint[], INOUT lasts_ bigint[],
    OUT judged_ boolean[], OUT plan_fates_ text[], OUT fireds_ bigint[], OUT mades_ uuid[]
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(j.judged), array_agg(j.fate),
           array_agg(CASE WHEN j.fate = 'started' AND j.kind <> 'backfill' AND j.overlap <> 'allow'
                          THEN j.job ELSE j.active END),
           array_agg(j.skips + j.skipped), array_agg(j.rows + j.skipped - j.instead),
           array_agg(CASE WHEN j.fate IS NOT NULL AND j.kind = 'due' THEN greatest(j.last, j.due)
                          ELSE j.last END),
           array_agg(CASE WHEN j.made AND j.kind = 'due' THEN 1 ELSE 0 END),
           array_agg(CASE WHEN j.made AND j.kind <> 'backfill' THEN j.job END)
    INTO judged_, plan_fates_, actives_, skips_, rows_, lasts_, fireds_, mades_
    FROM (
        SELECT f.*,
               coalesce(f.fate IN ('started', 'queued'), false) AS made,
               CASE WHEN f.fate IN ('overlap', 'queue_full') THEN 1 ELSE 0 END AS skipped,
               CASE WHEN f.fate IS NOT NULL AND f.there IS NOT NULL THEN 1 ELSE 0 END AS instead
        FROM (
            SELECT r.*, there.state AS there,
                   CASE WHEN r.judged AND is_free(there.state, r.kind)
                        THEN fate_of(r.kind, r.overlap, r.state, r.queued) END AS fate
            FROM (
                SELECT p.*, p.counted AND p.number = 1
                            AND (p.overlap <> 'cancel_running' OR p.state IS NULL) AS judged
                FROM (
                    SELECT u.*, run_dues_[u.first] AS due, kinds_[u.first] AS kind,
                           overlaps_[u.first] AS overlap, jobs_[u.first] AS job
                    FROM (
                        SELECT g.*, sum(g.number) OVER (ORDER BY g.n) - g.number + 1 AS first
                        FROM unnest(ids_, counted_, run_counts_, states_, queued_, actives_, skips_,
                                    rows_, lasts_)
                             WITH ORDINALITY AS g(id, counted, number, state, queued, active, skips,
                                                  rows, last, n)
                    ) AS u
                ) AS p
            ) AS r
            LEFT JOIN LATERAL (
                SELECT run.state FROM run
                WHERE run.schedule = r.id AND run.due = r.due AND r.judged
                LIMIT 1
            ) AS there ON true
        ) AS f
        ORDER BY f.n
    ) AS j;
END
$$;

-- judge: decide about runs, one after the other. Reads which occurrences have a run; writes nothing.
-- in   states_, queued_  per plan: the state of the active job, NULL if it is over, and how many wait
-- out  fates_            per run: NULL, because there is one · started · queued · overlap · queue_full ·
--                        cancelled: started, and then in the way of another of the same plan ·
--                        replaced: queued, and then likewise
--      cancels_          jobs that are in the way;   replaced_  plans whose queued runs are
--      agains_           per plan: whether jobs of its schedule end by it
--      actives_ …        per plan: the active job, jobs made for occurrences, occurrences skipped and
--                        the rows for that, the last occurrence, the last job
CREATE OR REPLACE FUNCTION judge(
    ids_ text[], counted_ boolean[], run_counts_ integer[], run_of_ integer[], run_dues_ bigint[],
    kinds_ text[], overlaps_ text[], jobs_ uuid[], states_ text[], queued_ bigint[],
    INOUT actives_ uuid[], INOUT skips_ bigint[], INOUT rows_ bigint[], INOUT lasts_ bigint[],
    OUT fates_ text[], OUT cancels_ uuid[], OUT replaced_ integer[], OUT agains_ boolean[],
    OUT fireds_ bigint[], OUT mades_ uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    judged_ boolean[];
    plan_fates_ text[];
    run_ record;
    plan_ integer := 0;
    state_ text;
    wait_ bigint;
    mine_ bigint;
    line_ bigint[];
    due_ bigint;
    fate_ text;
    one_ bigint;
BEGIN
    cancels_ := '{}';
    replaced_ := '{}';
    agains_ := array_fill(false, ARRAY[cardinality(ids_)]);
    SELECT j.actives_, j.skips_, j.rows_, j.lasts_, j.judged_, j.plan_fates_, j.fireds_, j.mades_
    INTO actives_, skips_, rows_, lasts_, judged_, plan_fates_, fireds_, mades_
    FROM judge_alone(ids_, counted_, run_counts_, run_dues_, kinds_, overlaps_, jobs_, states_,
                     queued_, actives_, skips_, rows_, lasts_) AS j;
    fates_ := ARRAY(SELECT CASE WHEN judged_[r.of] THEN plan_fates_[r.of] END
                    FROM unnest(run_of_) WITH ORDINALITY AS r(of, n)
                    ORDER BY r.n);
    FOR run_ IN
        SELECT r.n, r.of, r.due, r.kind, r.overlap, there.state IS NOT NULL AS instead
        FROM unnest(run_of_, run_dues_, kinds_, overlaps_)
             WITH ORDINALITY AS r(of, due, kind, overlap, n)
        LEFT JOIN LATERAL (
            SELECT run.state FROM run WHERE run.schedule = ids_[r.of] AND run.due = r.due LIMIT 1
        ) AS there ON true
        WHERE counted_[r.of] AND NOT judged_[r.of] AND is_free(there.state, r.kind)
        ORDER BY r.n
    LOOP
        IF run_.of <> plan_ THEN
            plan_ := run_.of;
            state_ := states_[plan_];
            wait_ := queued_[plan_];
            mine_ := NULL;
            line_ := '{}';
            due_ := NULL;
        END IF;
        CONTINUE WHEN run_.due = due_;
        due_ := run_.due;
        fate_ := fate_of(run_.kind, run_.overlap, state_, wait_);
        fates_[run_.n] := fate_;
        IF run_.kind = 'due' THEN
            lasts_[plan_] := greatest(lasts_[plan_], due_);
        END IF;
        IF fate_ IN ('overlap', 'queue_full') THEN
            skips_[plan_] := skips_[plan_] + 1;
            rows_[plan_] := rows_[plan_] + 1;
            CONTINUE;
        END IF;
        IF run_.kind = 'backfill' THEN
            rows_[plan_] := rows_[plan_] - CASE WHEN run_.instead THEN 1 ELSE 0 END;
            CONTINUE;
        END IF;
        mades_[plan_] := jobs_[run_.n];
        IF run_.kind = 'due' THEN
            fireds_[plan_] := fireds_[plan_] + 1;
        END IF;
        CONTINUE WHEN run_.overlap = 'allow';
        IF fate_ = 'started' THEN
            actives_[plan_] := jobs_[run_.n];
            -- Only a job that was there before can be over already.
            state_ := CASE WHEN ended_of(ARRAY[jobs_[run_.n]]) IS NULL THEN 'waiting' END;
            mine_ := run_.n;
            CONTINUE;
        END IF;
        IF run_.overlap = 'cancel_running' THEN
            IF mine_ IS NULL THEN
                cancels_ := cancels_ || actives_[plan_];
            ELSE
                fates_[mine_] := 'cancelled';
            END IF;
            agains_[plan_] := agains_[plan_] OR state_ <> 'running' OR wait_ > 0;
            IF state_ <> 'running' THEN
                state_ := NULL;
            END IF;
            IF wait_ > cardinality(line_) THEN
                replaced_ := replaced_ || plan_;
            END IF;
            FOREACH one_ IN ARRAY line_ LOOP
                fates_[one_] := 'replaced';
                skips_[plan_] := skips_[plan_] + 1;
                rows_[plan_] := rows_[plan_] + 1;
            END LOOP;
            line_ := '{}';
            wait_ := 0;
        END IF;
        line_ := line_ || run_.n;
        wait_ := wait_ + 1;
    END LOOP;
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
CREATE OR REPLACE FUNCTION make_jobs(
    fates_ text[], ids_ text[], run_of_ integer[],
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[],
    jobs_ uuid[], lane_of_ integer[], tenants_ text[],
    starts_ integer[], sizes_ integer[], args_ bytea,
    delays_ bigint[], instants_ bigint[], extras_ text[], deliveries_ text[], costs_ integer[],
    held_ boolean[], mark_ text, now_ bigint
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    known_ bigint[];
    holds_ boolean[];
    schedules_ text[];
    fresh_ uuid[];
    ended_ uuid[];
BEGIN
    SELECT array_agg(r.n) FILTER (WHERE r.fate IS NULL OR r.fate IN ('overlap', 'queue_full')),
           array_agg(coalesce(r.held, false) OR r.fate IN ('queued', 'cancelled', 'replaced')),
           array_agg(ids_[r.of])
    INTO known_, holds_, schedules_
    FROM unnest(run_of_, fates_, held_) WITH ORDINALITY AS r(of, fate, held, n);
    IF cardinality(known_) = cardinality(jobs_) THEN
        RETURN '{}';
    END IF;
    fresh_ := insert_jobs(
        jobs_, lanes_of(queues_, levels_, types_, requirements_), lane_of_, tenants_, starts_,
        sizes_, args_, delays_, instants_, extras_, deliveries_, costs_, schedules_, holds_,
        mark_at(mark_, now_), known_, now_);
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
    fates_ text[], ids_ text[], run_of_ integer[], run_dues_ bigint[], kinds_ text[], jobs_ uuid[],
    fresh_ uuid[], now_ bigint
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wanted_ bigint;
BEGIN
    IF 'backfill' = ANY (kinds_) THEN
        -- It runs what was skipped.
        DELETE FROM run
        USING unnest(run_of_, run_dues_, kinds_, fates_) AS r(of, due, kind, fate)
        WHERE r.kind = 'backfill' AND r.fate IS NOT NULL
          AND run.schedule = ids_[r.of] AND run.due = r.due;
    END IF;
    INSERT INTO run (schedule, due, kind, state, at, job, reason, number)
    SELECT ids_[r.of], r.due, r.kind,
           CASE WHEN f.skipped THEN 'skipped' WHEN r.fate = 'cancelled' THEN 'started'
                ELSE r.fate END,
           now_,
           -- Who triggers it again has to be told the same.
           CASE WHEN r.kind = 'trigger' OR r.fate NOT IN ('overlap', 'queue_full') THEN r.job END,
           CASE WHEN f.skipped THEN r.fate END,
           1
    FROM unnest(run_of_, run_dues_, kinds_, fates_, jobs_) AS r(of, due, kind, fate, job)
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
    WHERE schedule.id = sums.schedule;
END
$$;

-- cancel_in_the_way: cancel jobs for which others are started or queued. Lock: held already; those
-- that were made just now are held, and nobody has seen them.
CREATE OR REPLACE FUNCTION cancel_in_the_way(
    cancels_ uuid[], replaced_ uuid[], fates_ text[], jobs_ uuid[], cancel_ text, why_ text,
    now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    mark_ text;
    ended_ record;
BEGIN
    cancels_ := cancels_ || ARRAY(
        SELECT r.job FROM unnest(fates_, jobs_) AS r(fate, job) WHERE r.fate = 'cancelled');
    replaced_ := replaced_ || ARRAY(
        SELECT r.job FROM unnest(fates_, jobs_) AS r(fate, job) WHERE r.fate = 'replaced');
    IF cardinality(cancels_) + cardinality(replaced_) = 0 THEN
        RETURN;
    END IF;
    mark_ := mark_at(cancel_, now_);
    PERFORM cancel_jobs(replaced_, mark_, why_, now_);
    ended_ := cancel_jobs(cancels_, mark_, why_, now_);
    IF ended_.jobs_ IS NOT NULL THEN
        PERFORM end_runs(ended_.schedules_, ended_.jobs_,
                         array_fill('cancelled'::text, ARRAY[cardinality(ended_.jobs_)]), now_);
    END IF;
END
$$;

-- write_schedules: write what plans say of their schedules and what came of them, and remove the
-- earliest of the runs beyond what is kept. Index: run_good, run_rest.
-- in   goods_, rests_            how many to keep;   kept_goods_, kept_rests_  how many there were
CREATE OR REPLACE FUNCTION write_schedules(
    ids_ text[], counted_ boolean[], planned_ boolean, nexts_ bigint[], dues_ bigint[],
    holds_ text[], backfills_ text[], zones_ text[], goods_ bigint[], rests_ bigint[],
    kept_goods_ bigint[], kept_rests_ bigint[], actives_ uuid[], agains_ boolean[],
    fireds_ bigint[], skips_ bigint[], rows_ bigint[], lasts_ bigint[], mades_ uuid[], now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    less_good_ bigint[];
    less_rest_ bigint[];
BEGIN
    SELECT array_agg(least(greatest(p.kept_good - p.good, 0), 500)),
           array_agg(least(greatest(p.kept_rest + p.more - p.rest, 0), 500))
    INTO less_good_, less_rest_
    FROM unnest(kept_goods_, goods_, kept_rests_, rows_, rests_)
         AS p(kept_good, good, kept_rest, more, rest);
    PERFORM drop_runs(ids_, less_good_, less_rest_);
    UPDATE schedule
    SET cursor = coalesce(p.next, schedule.cursor),
        due = CASE WHEN planned_ THEN p.due ELSE schedule.due END,
        wake = CASE WHEN p.again THEN now_
                    WHEN NOT planned_ THEN schedule.wake
                    WHEN p.backfill IS NOT NULL AND has_room(p.id, p.backfill) THEN now_
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
    FROM unnest(ids_, counted_, nexts_, dues_, holds_, backfills_, zones_, actives_, agains_,
                fireds_, skips_, rows_, lasts_, mades_, less_good_, less_rest_)
         AS p(id, counted, next, due, hold, backfill, zones, active, again, fired, skipped, more,
              last, made, less_good, less_rest)
    WHERE p.counted AND schedule.id = p.id;
END
$$;

-- has_room: whether more jobs of a backfill may be made. Index: run_backfill.
CREATE OR REPLACE FUNCTION has_room(id_ text, backfill_ text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (backfill_::jsonb ->> 'limit')::bigint > (
        SELECT count(*) FROM run
        WHERE run.schedule = id_ AND run.kind = 'backfill' AND run.state = 'started');
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
