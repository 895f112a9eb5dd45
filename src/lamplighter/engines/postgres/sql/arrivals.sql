-- Arrivals: who submits leaves word of it without a lock, and claims fold it into the turns.
-- Functions without settings of their own are called only by those that have them.

-- meet: let bands know of jobs that have arrived, and of sleepers whose time has come.
-- in   looked_   the snapshot of this look, from before the lanes were read
--      number_   the number of the next hand-out; NULL: there is room for none
-- out  picks_    a job that was handed out as it arrived, see take_arrival
--      more_     whether arrivals were left
CREATE OR REPLACE FUNCTION meet(
    INOUT bands_ band_line[], looked_ pg_snapshot, now_ bigint, before_ bigint, number_ bigint,
    OUT picks_ pick[], OUT more_ boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    band_ band_line;
    pick_ pick;
    places_ tid[];
    -- Nobody in line so far, and whose turn it is does not depend on who comes after.
    free_ boolean := number_ IS NOT NULL AND (cardinality(bands_) = 1 OR number_ % 10 <> 0);
BEGIN
    picks_ := '{}';
    more_ := false;
    FOR n_ IN 1..cardinality(bands_) LOOP
        band_ := bands_[n_];
        free_ := free_ AND band_.due = @never@ AND band_.asleep > now_;
        places_ := new_arrivals(band_);
        CONTINUE WHEN places_ IS NULL AND band_.asleep > now_;
        more_ := more_ OR coalesce(cardinality(places_) = 1000, false);
        band_.looked := CASE WHEN cardinality(places_) < 1000 THEN looked_ END;
        pick_ := CASE WHEN free_ AND cardinality(places_) = 1
                      THEN take_arrival(band_, places_[1], now_, before_, number_) END;
        IF pick_.job IS NULL THEN
            band_ := fold(band_, places_, now_);
        ELSE
            picks_ := ARRAY[pick_];
            band_.clock := pick_.time;
        END IF;
        bands_[n_] := band_;
        free_ := false;
    END LOOP;
END
$$;

-- new_arrivals: the first thousand arrivals of a band that no claim has folded; NULL for none.
-- Arrivals are new when their transactions were not over at the last look. Who only looked for "numbers
-- above the last" would miss what commits late. Index: arrival_new.
CREATE OR REPLACE FUNCTION new_arrivals(band_ band_line) RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    since_ xid8 := '0';
    late_ xid8[] := '{}';
BEGIN
    -- Transaction numbers begin again in a store that was dumped and restored elsewhere.
    IF pg_snapshot_xmax(band_.seen) <= pg_snapshot_xmax(pg_current_snapshot()) THEN
        since_ := pg_snapshot_xmax(band_.seen);
        late_ := ARRAY(SELECT pg_snapshot_xip(band_.seen));
    END IF;
    RETURN (
        SELECT array_agg(a.ctid)
        FROM (
            SELECT new.ctid
            FROM unnest(band_.lanes) AS l
            CROSS JOIN LATERAL (
                (SELECT arrival.ctid FROM arrival
                 WHERE arrival.lane = l.lane AND arrival.xact >= since_
                 ORDER BY arrival.xact LIMIT 1000)
                UNION ALL
                (SELECT arrival.ctid FROM arrival
                 WHERE arrival.lane = l.lane AND arrival.xact = ANY (late_) LIMIT 1000)
            ) AS new
            LIMIT 1000
        ) AS a);
END
$$;

-- fold: let turns know of arrivals, and put up to 64 sleepers in line whose time has come, earliest
-- first. Lock: the queue. Index: job_waiting, turn_newest, turn_asleep.
CREATE OR REPLACE FUNCTION fold(INOUT band_ band_line, places_ tid[], now_ bigint)
LANGUAGE plpgsql AS $$
BEGIN
    WITH arrived AS (
        DELETE FROM arrival
        WHERE arrival.ctid = ANY (places_)
        RETURNING arrival.lane, arrival.tenant, arrival.due, arrival.seq
    ), rested AS (
        SELECT t.lane, t.tenant, t.due, t.seq
        FROM unnest(band_.lanes) AS l
        CROSS JOIN LATERAL (
            SELECT turn.lane, turn.tenant, turn.due, turn.seq
            FROM turn
            WHERE turn.lane = l.lane AND turn.awake = @asleep@
              AND turn.due >= l.asleep AND turn.due <= now_
            ORDER BY turn.due, turn.seq
            LIMIT 64
        ) AS t
        WHERE l.asleep <= now_
        ORDER BY t.due, t.seq
        LIMIT 64
    ), heads AS MATERIALIZED (
        SELECT a.lane, a.tenant, head.due, head.seq, turn.place,
               greatest(tenant.time, band_.clock) AS time,
               CASE WHEN head.seq IS NULL THEN @empty@
                    WHEN tenant.held THEN @tenant_held@
                    WHEN head.due <= now_ THEN @in_line@
                    ELSE @asleep@ END AS wanted
        FROM (
            SELECT DISTINCT ON (a.lane, a.tenant) a.lane, a.tenant, a.due, a.seq
            FROM (SELECT * FROM arrived UNION ALL SELECT * FROM rested) AS a
            ORDER BY a.lane, a.tenant, a.due, a.seq
        ) AS a
        -- What arrived may have been cancelled or held since.
        LEFT JOIN LATERAL (
            @head_of(a)@
        ) AS head ON true
        LEFT JOIN LATERAL (
            @turn_of(a.lane, a.tenant)@
        ) AS turn ON true
        @tenant_of(band_.band, a.tenant)@ AS tenant
    ), moved AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = coalesce(heads.due, turn.due),
            seq = coalesce(heads.seq, turn.seq),
            time = CASE WHEN turn.awake = @in_line@ THEN turn.time ELSE heads.time END,
            awake = CASE WHEN turn.awake IN (@in_line@, @tenant_held@) THEN turn.awake
                         ELSE heads.wanted END
        FROM heads
        WHERE turn.ctid = heads.place
          AND (turn.awake = @empty@
               OR turn.awake = @asleep@ AND turn.due <= now_
               OR (heads.due, heads.seq) < (turn.due, turn.seq))
        RETURNING turn.lane, turn.due
    ), added AS (
        INSERT INTO turn (lane, tenant, version, awake, time, due, seq)
        SELECT heads.lane, heads.tenant, nextval('turn_version'), heads.wanted, heads.time,
               heads.due, heads.seq
        FROM heads
        WHERE heads.place IS NULL AND heads.seq IS NOT NULL
        RETURNING turn.lane, turn.due
    ), changed AS (
        SELECT * FROM moved UNION ALL SELECT * FROM added
    )
    SELECT array_agg(ROW(l.lane, l.asked, l.edge, l.time, least(l.due, c.due), l.asleep)::lane_edge),
           band_.touched || array_agg(c.lane) FILTER (WHERE c.lane IS NOT NULL)
    INTO band_.lanes, band_.touched
    FROM unnest(band_.lanes) AS l
    LEFT JOIN (
        SELECT changed.lane, min(changed.due) AS due FROM changed GROUP BY changed.lane
    ) AS c ON c.lane = l.lane;
END
$$;

-- take_arrival: hand out a job as it arrives, if nobody stands in line, it is due, and none is behind it.
-- It would join the line, be taken as its first, and leave the turn as it was: that is what becomes of
-- most jobs in a program that is not busy. Its tenant pays as it would in line, the turn is not written,
-- and no edge moves. Who is due since before `before_` takes the ordinary way, since hand-outs to the
-- starving are counted differently.
-- out  the job; NULL: the ordinary way
CREATE OR REPLACE FUNCTION take_arrival(
    band_ band_line, place_ tid, now_ bigint, before_ bigint, number_ bigint
) RETURNS pick
LANGUAGE plpgsql AS $$
DECLARE
    found_ record;
    tenant_ record;
    paid_ bigint;
BEGIN
    SELECT a.lane, a.tenant, head.*, next.due AS next_due, next.seq AS next_seq INTO found_
    FROM arrival AS a
    CROSS JOIN LATERAL (
        @head_of(a)@
    ) AS head
    CROSS JOIN LATERAL (SELECT a.lane, a.tenant, head.due, head.seq + 1 AS seq) AS behind
    LEFT JOIN LATERAL (
        @head_of(behind)@
    ) AS next ON true
    WHERE a.ctid = place_ AND head.due BETWEEN before_ AND now_ AND (next.due > now_) IS NOT FALSE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT tenant.share, tenant.weight, greatest(tenant.time, band_.clock) AS time INTO tenant_
    FROM unnest(band_.lanes) AS l
    LEFT JOIN LATERAL (
        @turn_of(l.lane, found_.tenant)@
    ) AS turn ON true
    @tenant_of(band_.band, found_.tenant)@ AS tenant
    WHERE l.lane = found_.lane
      AND l.asked
      AND NOT tenant.held
      -- What is behind it is all that the turn knows: nothing, or its sleeping head.
      AND CASE turn.awake
              WHEN @asleep@ THEN (found_.next_due, found_.next_seq) = (turn.due, turn.seq)
              WHEN @in_line@ THEN false
              WHEN @tenant_held@ THEN false
              ELSE found_.next_seq IS NULL END;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM arrival WHERE arrival.ctid = place_;
    paid_ := tenant_.time + @step(found_.cost, tenant_.weight)@;
    UPDATE share SET time = paid_ WHERE share.ctid = tenant_.share;
    IF NOT FOUND THEN
        INSERT INTO share (band, tenant, time) VALUES (band_.band, found_.tenant, paid_);
    END IF;
    RETURN ROW(found_.place, number_, found_.lane, found_.size, NULL, found_.tenant, found_.due,
               found_.seq, tenant_.time, paid_)::pick;
END
$$;
