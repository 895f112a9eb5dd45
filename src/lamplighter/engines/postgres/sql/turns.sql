-- Turns: who waits in which lane. The lock of a queue guards its turns and its waiting jobs, and all
-- that is written here: pulses, edges, shares, what was handed out.
--
-- A snapshot that somebody holds open keeps every dead row of these tables, and each claim makes
-- some. So every look meets the living row before the dead ones: rows are found by their key with
-- the newest version first, and lines are entered at their edge, before which nothing lives.
-- No key is unique, since that check would visit all the dead: the lock sees to it that there is one.
-- Functions without settings of their own are called only by those that have them.

-- lock_queues: take the locks of these queues, always in the same order, until the transaction ends.
CREATE OR REPLACE FUNCTION lock_queues(queues_ text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    name_ text;
BEGIN
    IF cardinality(queues_) = 1 THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || queues_[1], 0));
        RETURN;
    END IF;
    FOR name_ IN SELECT DISTINCT q COLLATE "C" FROM unnest(queues_) AS q ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || name_, 0));
    END LOOP;
END
$$;

-- move_on: let tenants, turns and the clock of a band follow what was taken. Lock: the queue.
-- in   quiet_   whether every tenth hand-out leaves the clock alone
CREATE OR REPLACE FUNCTION move_on(
    INOUT band_ band_line, picks_ pick[], quiet_ boolean, now_ bigint
)
LANGUAGE plpgsql AS $$
BEGIN
    WITH lasts AS MATERIALIZED (
        SELECT DISTINCT ON (p.turn) p.turn, p.lane, p.tenant, p.due, p.seq + 1 AS seq,
               max(p.paid) OVER (PARTITION BY p.tenant) AS paid
        FROM unnest(picks_) AS p
        ORDER BY p.turn, p.due DESC, p.seq DESC
    ), shares AS MATERIALIZED (
        SELECT p.tenant, p.paid, tenant.share
        FROM (SELECT DISTINCT lasts.tenant, lasts.paid FROM lasts) AS p
        @tenant_of(band_.band, p.tenant)@ AS tenant
    ), charged AS (
        UPDATE share SET time = shares.paid FROM shares WHERE share.ctid = shares.share
    ), added AS (
        INSERT INTO share (band, tenant, time)
        SELECT band_.band, shares.tenant, shares.paid FROM shares WHERE shares.share IS NULL
    ), moved AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = coalesce(head.due, turn.due),
            seq = coalesce(head.seq, turn.seq),
            time = lasts.paid,
            -- An empty one stays, so that who looks for it need not look behind it.
            awake = CASE WHEN head.seq IS NULL THEN @empty@ WHEN head.due <= now_ THEN @in_line@
                         ELSE @asleep@ END
        FROM lasts
        LEFT JOIN LATERAL (
            @head_of(lasts)@
        ) AS head ON true
        WHERE turn.ctid = lasts.turn
    )
    SELECT greatest(band_.clock, max(p.time) FILTER (WHERE NOT quiet_ OR p.number % 10 <> 0)),
           band_.touched || array_agg(DISTINCT p.lane)
    INTO band_.clock, band_.touched
    FROM unnest(picks_) AS p;
END
$$;

-- keep: write down what a claim leaves behind: pulses, and the edges of the lanes that were touched.
-- Nothing lives before the edges given; who fell asleep is due later than now; and who comes next stands
-- at the clock or after it.
-- in   soonest_  when the first of the asked lanes' turns falls due: a bound; out: exactly
CREATE OR REPLACE FUNCTION keep(bands_ band_line[], INOUT soonest_ bigint, now_ bigint)
LANGUAGE plpgsql AS $$
DECLARE
    band_ band_line;
    touched_ boolean := false;
BEGIN
    FOREACH band_ IN ARRAY bands_ LOOP
        touched_ := touched_ OR cardinality(band_.touched) > 0;
        CONTINUE WHEN band_.looked IS NULL AND band_.clock = band_.old_clock;
        UPDATE pulse
        SET version = nextval('turn_version'),
            clock = band_.clock,
            seen = coalesce(band_.looked, pulse.seen)
        WHERE pulse.ctid = band_.pulse;
        IF NOT FOUND THEN
            INSERT INTO pulse (band, version, clock, seen)
            VALUES (band_.band, nextval('turn_version'), band_.clock, band_.looked);
        END IF;
    END LOOP;
    IF NOT touched_ THEN
        RETURN;
    END IF;
    WITH exact AS MATERIALIZED (
        SELECT l.edge, l.lane, l.asked, t.touched,
               CASE WHEN t.touched THEN least(b.clock, (
                   SELECT turn.time FROM turn
                   WHERE turn.lane = l.lane AND turn.awake = @in_line@
                     AND turn.time >= 0 AND turn.time >= l.time
                   ORDER BY turn.time, turn.tenant LIMIT 1)) END AS time,
               CASE WHEN t.touched THEN @first_due(l.lane, l.due)@ ELSE l.due END AS due,
               CASE WHEN t.touched THEN @first_asleep(l.lane, t.asleep)@
                    ELSE l.asleep END AS asleep
        FROM unnest(bands_) AS b
        CROSS JOIN LATERAL unnest(b.lanes) AS l
        CROSS JOIN LATERAL (
            SELECT l.lane = ANY (b.touched) AS touched, least(l.asleep, now_) AS asleep
        ) AS t
    ), moved AS (
        UPDATE edge
        SET version = nextval('turn_version'),
            time = exact.time,
            due = exact.due,
            asleep = exact.asleep
        FROM exact
        WHERE edge.ctid = exact.edge
          AND exact.touched
          AND (edge.time, edge.due, edge.asleep) <> (exact.time, exact.due, exact.asleep)
    ), added AS (
        INSERT INTO edge (lane, version, time, due, asleep)
        SELECT exact.lane, nextval('turn_version'), exact.time, exact.due, exact.asleep
        FROM exact
        WHERE exact.edge IS NULL AND exact.touched
    )
    SELECT min(least(exact.due, exact.asleep)) INTO soonest_ FROM exact WHERE exact.asked;
END
$$;
