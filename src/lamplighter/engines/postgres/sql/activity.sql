-- activity: what happened, minute by minute.

-- tally: add the counts of a worker to the present minute, unless its number was written before.
-- Whoever begins a minute forgets what is older than a day, a bounded number of rows. Nothing here
-- needs to survive a crash of the server.
CREATE OR REPLACE FUNCTION tally(worker_ text, number_ bigint, counts_ bigint[]) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
    minute_ bigint := now_ - now_ % 60000;
    begun boolean;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO tally (worker, number, at) VALUES (worker_, number_, now_)
    ON CONFLICT (worker) DO UPDATE SET number = excluded.number, at = excluded.at
    WHERE excluded.number > tally.number;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO activity AS known (minute, counts) VALUES (minute_, counts_)
    ON CONFLICT (minute) DO UPDATE
    SET counts = (
        SELECT array_agg(coalesce(one.old, 0) + coalesce(one.new, 0) ORDER BY one.place)
        FROM unnest(known.counts, excluded.counts) WITH ORDINALITY AS one(old, new, place)
    )
    RETURNING known.xmax = 0 INTO begun;
    IF begun THEN
        DELETE FROM activity
        WHERE activity.minute IN (
            SELECT old.minute FROM activity AS old
            WHERE old.minute < minute_ - 1439 * 60000
            ORDER BY old.minute
            LIMIT 100
            FOR UPDATE SKIP LOCKED
        );
        DELETE FROM tally
        WHERE tally.worker IN (
            SELECT old.worker FROM tally AS old
            WHERE old.at < minute_ - 1439 * 60000
            ORDER BY old.at
            LIMIT 100
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    RETURN true;
END
$$;

-- read_activity: the minutes from one to another in which something was tallied, oldest first.
CREATE OR REPLACE FUNCTION read_activity(now_ bigint, minutes_ integer)
RETURNS TABLE (minute bigint, counts bigint[])
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off AS $$
    SELECT activity.minute, activity.counts
    FROM activity
    WHERE activity.minute > now_ - now_ % 60000 - minutes_ * 60000::bigint
      AND activity.minute <= now_
    ORDER BY activity.minute
$$;
