-- backfill: begin to run occurrences of the past, and wake the schedule. Lock: the schedule.
-- Guard: one at a time; the same again is known by all but how far it has come.
-- in   id_  the key of the schedule
-- out  done · already · conflict · unknown
CREATE OR REPLACE FUNCTION backfill(id_ text, backfill_ text) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    before_ record;
BEGIN
    PERFORM lock_schedules(ARRAY[id_]);
    SELECT schedule.backfill::jsonb AS backfill INTO before_
    FROM schedule
    WHERE schedule.key = id_;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF before_.backfill - 'cursor' - 'made' = backfill_::jsonb - 'cursor' - 'made' THEN
        RETURN 'already';
    END IF;
    IF before_.backfill IS NOT NULL THEN
        RETURN 'conflict';
    END IF;
    UPDATE schedule
    SET backfill = backfill_, version = schedule.version + 1, wake = least(schedule.wake, now_ms())
    WHERE schedule.key = id_;
    RETURN 'done';
END
$$;
