-- hold_schedules: keep schedules from being fired. Lock: the schedules.
-- out  id, answer: one row for each schedule that is known
CREATE OR REPLACE FUNCTION hold_schedules(ids_ text[], tenant_ text, mark_ text)
RETURNS TABLE (id text, answer text)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
BEGIN
    ids_ := schedule_keys(ids_, tenant_);
    PERFORM lock_schedules(ids_);
    RETURN QUERY
        SELECT schedule.id, CASE WHEN schedule.hold IS NULL THEN 'done' ELSE 'already' END
        FROM schedule
        WHERE schedule.key = ANY (ids_);
    UPDATE schedule
    SET hold = mark_at(mark_, now_ms()), version = schedule.version + 1
    WHERE schedule.key = ANY (ids_) AND schedule.hold IS NULL;
END
$$;
