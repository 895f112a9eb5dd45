-- What becomes of runs while others of their schedules go on, called only by fire.

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
    call_ fire_call, counted_ boolean[], states_ text[], queued_ bigint[],
    INOUT actives_ uuid[], INOUT skips_ bigint[], INOUT rows_ bigint[], INOUT lasts_ bigint[],
    OUT judged_ boolean[], OUT plan_fates_ text[], OUT fireds_ bigint[], OUT mades_ uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ CONSTANT uuid[] := (call_.jobs).ids;
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
                    SELECT u.*, call_.run_dues[u.first] AS due, call_.kinds[u.first] AS kind,
                           call_.overlaps[u.first] AS overlap, jobs_[u.first] AS job
                    FROM (
                        SELECT g.*, sum(g.number) OVER (ORDER BY g.n) - g.number + 1 AS first
                        FROM unnest(call_.ids, counted_, call_.run_counts, states_, queued_, actives_, skips_,
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
    call_ fire_call, counted_ boolean[], states_ text[], queued_ bigint[],
    INOUT actives_ uuid[], INOUT skips_ bigint[], INOUT rows_ bigint[], INOUT lasts_ bigint[],
    OUT fates_ text[], OUT cancels_ uuid[], OUT replaced_ integer[], OUT agains_ boolean[],
    OUT fireds_ bigint[], OUT mades_ uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
    jobs_ CONSTANT uuid[] := (call_.jobs).ids;
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
    agains_ := array_fill(false, ARRAY[cardinality(call_.ids)]);
    SELECT j.actives_, j.skips_, j.rows_, j.lasts_, j.judged_, j.plan_fates_, j.fireds_, j.mades_
    INTO actives_, skips_, rows_, lasts_, judged_, plan_fates_, fireds_, mades_
    FROM judge_alone(call_, counted_, states_, queued_, actives_, skips_, rows_, lasts_) AS j;
    fates_ := ARRAY(SELECT CASE WHEN judged_[r.of] THEN plan_fates_[r.of] END
                    FROM unnest(call_.run_of) WITH ORDINALITY AS r(of, n)
                    ORDER BY r.n);
    FOR run_ IN
        SELECT r.n, r.of, r.due, r.kind, r.overlap, there.state IS NOT NULL AS instead
        FROM unnest(call_.run_of, call_.run_dues, call_.kinds, call_.overlaps)
             WITH ORDINALITY AS r(of, due, kind, overlap, n)
        LEFT JOIN LATERAL (
            SELECT run.state FROM run WHERE run.schedule = call_.ids[r.of] AND run.due = r.due LIMIT 1
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
            rows_[plan_] := rows_[plan_] - run_.instead::integer;
            CONTINUE;
        END IF;
        mades_[plan_] := jobs_[run_.n];
        fireds_[plan_] := fireds_[plan_] + (run_.kind = 'due')::integer;
        CONTINUE WHEN run_.overlap = 'allow';
        IF fate_ = 'started' THEN
            actives_[plan_] := jobs_[run_.n];
            -- Only a job that was there before can be over already.
            state_ := CASE WHEN ended_of(ARRAY[jobs_[run_.n]]) IS NULL THEN 'waiting' END;
            mine_ := run_.n;
            CONTINUE;
        END IF;
        IF run_.overlap = 'cancel_running' THEN
            IF state_ <> 'over' AND mine_ IS NULL THEN
                cancels_ := cancels_ || actives_[plan_];
            ELSIF state_ <> 'over' THEN
                fates_[mine_] := 'cancelled';
            END IF;
            agains_[plan_] := agains_[plan_] OR state_ <> 'running' OR wait_ > 0;
            IF state_ <> 'running' THEN
                -- But those that follow have to wait behind this one.
                state_ := 'over';
            END IF;
            IF wait_ > cardinality(line_) THEN
                replaced_ := replaced_ || plan_;
            END IF;
            FOREACH one_ IN ARRAY line_ LOOP
                fates_[one_] := 'replaced';
            END LOOP;
            skips_[plan_] := skips_[plan_] + cardinality(line_);
            rows_[plan_] := rows_[plan_] + cardinality(line_);
            line_ := '{}';
            wait_ := 0;
        END IF;
        line_ := line_ || run_.n;
        wait_ := wait_ + 1;
    END LOOP;
END
$$;
