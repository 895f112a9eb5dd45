-- due_schedules: hand out schedules that are due, for a while. Index: schedule_wake.
-- Lock: those that nobody has locked; the others are being handed out, fired or changed just now.
--
-- Each hand-out and each plan leaves a dead entry at the beginning of the index, and a snapshot that
-- somebody holds open keeps them all. So a look begins where the last one ended. Nothing wakes before
-- it is written, but it may be written late: a few seconds are looked at again, and once a minute all.
--
-- out  the schedules, of which the first has n = 1, and how many jobs of their backfills go on; the last
--      row has none, but the time, when to come again, and how long the first has been due
CREATE OR REPLACE FUNCTION due_schedules(limit_ integer, lease_ms_ bigint, newest_first_ boolean)
RETURNS TABLE (
    id text, spec text, tenant text, type text, version bigint, cursor bigint, due bigint,
    created bigint, changed bigint, fired bigint, skipped bigint, failures bigint,
    last_due bigint, last_job uuid, hold text, backfill text, zones text,
    backfilling bigint, n bigint, now bigint, poll_after bigint, oldest bigint
)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    from_ bigint := -9223372036854775808;
    vigil_ record;
    places_ tid[];
    since_ bigint[];
    next_ bigint;
BEGIN
    -- A hand-out that the server forgets is handed out again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT vigil.ctid AS place, vigil.clean, vigil.whole INTO vigil_
    FROM vigil ORDER BY vigil.version DESC LIMIT 1;
    IF now_ - vigil_.whole BETWEEN 0 AND 60000 THEN
        from_ := vigil_.clean - 5000;
    END IF;
    IF newest_first_ THEN
        SELECT array_agg(d.place), array_agg(d.since) INTO places_, since_
        FROM (
            SELECT schedule.ctid AS place, least(schedule.wake, schedule.due) AS since
            FROM schedule
            WHERE schedule.wake IS NOT NULL AND schedule.hold IS NULL
              AND schedule.wake >= from_ AND schedule.wake <= now_
            ORDER BY schedule.wake DESC, schedule.due DESC, schedule.key DESC
            LIMIT limit_
            FOR UPDATE SKIP LOCKED
        ) AS d;
    ELSE
        SELECT array_agg(d.place), array_agg(d.since) INTO places_, since_
        FROM (
            SELECT schedule.ctid AS place, least(schedule.wake, schedule.due) AS since
            FROM schedule
            WHERE schedule.wake IS NOT NULL AND schedule.hold IS NULL
              AND schedule.wake >= from_ AND schedule.wake <= now_
            ORDER BY schedule.wake, schedule.due, schedule.key
            LIMIT limit_
            FOR UPDATE SKIP LOCKED
        ) AS d;
    END IF;
    RETURN QUERY
        UPDATE schedule
        SET wake = now_ + lease_ms_
        FROM unnest(places_) WITH ORDINALITY AS t(place, n)
        WHERE schedule.ctid = t.place
        RETURNING schedule.id, schedule.spec, schedule.tenant, schedule.type, schedule.version,
                  schedule.cursor, schedule.due, schedule.created, schedule.changed,
                  schedule.fired, schedule.skipped, schedule.failures, schedule.last_due,
                  schedule.last_job, schedule.hold, schedule.backfill, schedule.zones,
                  (SELECT count(*) FROM run
                   WHERE run.schedule = schedule.key
                     AND run.kind = 'backfill' AND run.state = 'started'),
                  t.n, NULL::bigint, NULL::bigint, NULL::bigint;
    SELECT schedule.wake INTO next_
    FROM schedule
    WHERE schedule.wake IS NOT NULL AND schedule.hold IS NULL AND schedule.wake >= from_
    ORDER BY schedule.wake, schedule.due, schedule.key
    LIMIT 1;
    IF vigil_.place IS NULL THEN
        INSERT INTO vigil (version, clean, whole)
        VALUES (nextval('turn_version'), coalesce(least(next_, now_), now_), now_);
    ELSIF from_ < 0 OR coalesce(least(next_, now_), now_) - vigil_.clean NOT BETWEEN 0 AND 1000 THEN
        -- Of several that look at once, one writes.
        UPDATE vigil
        SET version = nextval('turn_version'),
            clean = coalesce(least(next_, now_), now_),
            whole = CASE WHEN from_ < 0 THEN now_ ELSE vigil.whole END
        WHERE vigil.ctid = vigil_.place;
    END IF;
    now := now_;
    oldest := coalesce(now_ - since_[1], 0);
    poll_after := CASE WHEN next_ > now_ THEN next_ - now_
                       WHEN cardinality(places_) = limit_ THEN 0
                       -- What is due and was not to be had is somebody else's for a moment.
                       WHEN next_ IS NOT NULL THEN 10 END;
    RETURN NEXT;
END
$$;
