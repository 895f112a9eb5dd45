-- trigger: make a run of a schedule now, whatever its calendar says. Lock: as fire.
-- Guard: the id of the job: who triggers with the same again is told the same.
-- in   id_                      the key of the schedule
--      overlap_, jobs_          what to do if it is in the way of another, and the job: see submit
--      cancel_, why_            who cancels what is in the way, as JSON, and why
-- out  known                    whether there is such a schedule
--      state, reason            what became of the run; only a reason `replaced` is of one with a job
CREATE OR REPLACE FUNCTION trigger(
    id_ text, overlap_ text, jobs_ job_batch, cancel_ text, why_ text,
    OUT known boolean, OUT state text, OUT reason text
)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    call_ fire_call;
    due_ bigint;
BEGIN
    PERFORM lock_plans(ARRAY[id_],
                       CASE WHEN overlap_ = 'cancel_running' THEN ARRAY[id_] ELSE '{}' END);
    known := EXISTS (SELECT FROM schedule WHERE schedule.key = id_);
    IF NOT known THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM run WHERE run.job = jobs_.ids[1] AND run.schedule = id_) THEN
        SELECT CASE WHEN run.state IN ('queued', 'skipped') THEN run.state ELSE 'started' END,
               run.reason
        INTO state, reason
        FROM run
        WHERE run.job = jobs_.ids[1] AND run.schedule = id_;
        RETURN;
    END IF;
    -- Occurrences are at whole seconds, or at the instant the schedule waits for: they keep their place.
    due_ := now_ms();
    WHILE due_ % 1000 = 0
          OR EXISTS (SELECT FROM schedule WHERE schedule.key = id_ AND schedule.due = due_)
          OR EXISTS (SELECT FROM run WHERE run.schedule = id_ AND run.due = due_) LOOP
        due_ := due_ + 1;
    END LOOP;
    call_.ids := ARRAY[id_];
    call_.run_counts := ARRAY[1];
    call_.run_of := ARRAY[1];
    call_.run_dues := ARRAY[due_];
    call_.kinds := ARRAY['trigger'];
    call_.overlaps := ARRAY[overlap_];
    call_.jobs := jobs_;
    call_.cancel := cancel_;
    call_.why := why_;
    PERFORM fire(call_);
    -- A job that is there already, and whose run is forgotten, may have ended.
    SELECT CASE WHEN run.state IN ('queued', 'skipped') THEN run.state ELSE 'started' END, run.reason
    INTO state, reason
    FROM run
    WHERE run.schedule = id_ AND run.due = due_;
END
$$;
