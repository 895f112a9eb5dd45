-- delete_schedules: remove schedules with their runs, and cancel what is queued.
-- Lock: the queues of the queued jobs, these jobs, then the schedules: see plans.sql.
-- Index: the keys of schedule and run, run_queued.
-- out  id, answer: one row for each schedule that was there
CREATE OR REPLACE FUNCTION delete_schedules(
    ids_ text[], tenant_ text, mark_ text, reason_ text
)
RETURNS TABLE (id text, answer text)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
    jobs_ uuid[];
BEGIN
    ids_ := schedule_keys(ids_, tenant_);
    PERFORM lock_plans(ids_, ids_);
    now_ := now_ms();
    jobs_ := queued_jobs(ids_);
    IF cardinality(jobs_) > 0 THEN
        PERFORM cancel_jobs(jobs_, mark_at(mark_, now_), reason_, now_);
    END IF;
    DELETE FROM run WHERE run.schedule = ANY (ids_);
    RETURN QUERY
        DELETE FROM schedule WHERE schedule.key = ANY (ids_) RETURNING schedule.id, 'done';
END
$$;
