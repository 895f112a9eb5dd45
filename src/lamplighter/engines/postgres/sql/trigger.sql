-- trigger: make a run of a schedule now, whatever its calendar says. Lock: as fire.
-- Guard: the id of the job: who triggers with the same again is told the same.
-- in   id_                      the key of the schedule
--      overlap_, queues_ …      what to do if it is in the way of another, and the job: see submit
--      cancel_, why_            who cancels what is in the way, as JSON, and why
-- out  known                    whether there is such a schedule
--      state, reason            what became of the run; only a reason `replaced` is of one with a job
CREATE OR REPLACE FUNCTION trigger(
    id_ text, overlap_ text,
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[],
    jobs_ uuid[], lane_of_ integer[], tenants_ text[],
    starts_ integer[], sizes_ integer[], args_ bytea,
    delays_ bigint[], instants_ bigint[], extras_ text[], deliveries_ text[], costs_ integer[],
    held_ boolean[], mark_ text, cancel_ text, why_ text,
    OUT known boolean, OUT state text, OUT reason text
)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    due_ bigint;
BEGIN
    PERFORM lock_plans(ARRAY[id_],
                       CASE WHEN overlap_ = 'cancel_running' THEN ARRAY[id_] ELSE '{}' END);
    known := EXISTS (SELECT FROM schedule WHERE schedule.key = id_);
    IF NOT known THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM run WHERE run.job = jobs_[1] AND run.schedule = id_) THEN
        SELECT CASE WHEN run.state IN ('queued', 'skipped') THEN run.state ELSE 'started' END,
               run.reason
        INTO state, reason
        FROM run
        WHERE run.job = jobs_[1] AND run.schedule = id_;
        RETURN;
    END IF;
    -- Occurrences are at whole seconds, or at the instant the schedule waits for: they keep their place.
    due_ := now_ms();
    WHILE due_ % 1000 = 0
          OR EXISTS (SELECT FROM schedule WHERE schedule.key = id_ AND schedule.due = due_)
          OR EXISTS (SELECT FROM run WHERE run.schedule = id_ AND run.due = due_) LOOP
        due_ := due_ + 1;
    END LOOP;
    PERFORM fire(
        ARRAY[id_], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ARRAY[1],
        NULL, NULL, NULL, NULL, NULL,
        ARRAY[1], ARRAY[due_], ARRAY['trigger'], ARRAY[overlap_],
        queues_, levels_, types_, requirements_, jobs_, lane_of_, tenants_, starts_, sizes_, args_,
        delays_, instants_, extras_, deliveries_, costs_, held_, mark_, cancel_, why_);
    -- A job that is there already, and whose run is forgotten, may have ended.
    SELECT CASE WHEN run.state IN ('queued', 'skipped') THEN run.state ELSE 'started' END, run.reason
    INTO state, reason
    FROM run
    WHERE run.schedule = id_ AND run.due = due_;
END
$$;
