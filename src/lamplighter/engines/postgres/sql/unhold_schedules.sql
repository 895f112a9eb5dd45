-- unhold_schedules: let held schedules go on, as if nothing had failed. Lock: the schedules.
-- out  id, answer: one row for each schedule that is known
CREATE OR REPLACE FUNCTION unhold_schedules(ids_ text[], tenant_ text)
RETURNS TABLE (id text, answer text)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
BEGIN
    ids_ := schedule_keys(ids_, tenant_);
    PERFORM lock_schedules(ids_);
    now_ := now_ms();
    RETURN QUERY
        SELECT schedule.id, CASE WHEN schedule.hold IS NULL THEN 'already' ELSE 'done' END
        FROM schedule
        WHERE schedule.key = ANY (ids_);
    UPDATE schedule
    SET hold = NULL, failures = 0, wake = now_, version = schedule.version + 1
    WHERE schedule.key = ANY (ids_) AND schedule.hold IS NOT NULL;
END
$$;
