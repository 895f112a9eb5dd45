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

-- recount_turns: find the heads of turns that jobs have left. Lock: their queues. Index: job_waiting.
-- An awake turn whose head is due later falls asleep; an empty one is gone. What has arrived in these
-- turns is among what is found, and is nothing new when it is folded.
-- out  the lanes that turns stand in now, and the earliest due time of those turns in each
CREATE OR REPLACE FUNCTION recount_turns(
    given_lanes_ integer[], given_tenants_ text[], OUT lanes_ integer[], OUT dues_ bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    WITH given AS (
        SELECT DISTINCT g.lane, g.tenant COLLATE "C" AS tenant
        FROM unnest(given_lanes_, given_tenants_) AS g(lane, tenant)
    ), heads AS MATERIALIZED (
        SELECT given.lane, given.tenant, head.due, head.seq, turn.place, turn.awake,
               greatest(
                   coalesce((SELECT share.time FROM share
                             WHERE share.band = lane.band AND share.tenant = given.tenant
                             ORDER BY share.time DESC LIMIT 1), 0),
                   coalesce((SELECT pulse.clock FROM pulse
                             WHERE pulse.band = lane.band
                             ORDER BY pulse.version DESC LIMIT 1), 0)) AS time,
               CASE WHEN (SELECT tenant.hold FROM tenant WHERE tenant.name = given.tenant)
                         IS NOT NULL THEN 2
                    WHEN head.due <= now_ THEN 1
                    ELSE 0 END AS wanted
        FROM given
        CROSS JOIN LATERAL (SELECT lane.band FROM lane WHERE lane.id = given.lane OFFSET 0) AS lane
        LEFT JOIN LATERAL (
            SELECT turn.ctid AS place, turn.awake
            FROM turn
            WHERE turn.tenant = given.tenant AND turn.lane = given.lane
            ORDER BY turn.version DESC
            LIMIT 1
        ) AS turn ON true
        LEFT JOIN LATERAL (
            SELECT job.due, job.seq
            FROM job
            WHERE job.lane = given.lane
              AND job.tenant = given.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
            ORDER BY job.due, job.seq
            LIMIT 1
        ) AS head ON true
    ), gone AS (
        DELETE FROM turn
        WHERE turn.ctid = ANY (ARRAY(SELECT heads.place FROM heads WHERE heads.seq IS NULL))
    ), moved AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = heads.due,
            seq = heads.seq,
            time = CASE WHEN turn.awake = 1 THEN turn.time ELSE heads.time END,
            awake = CASE
                WHEN turn.awake = 2 THEN 2
                WHEN turn.awake = 1 AND heads.due > now_ THEN 0
                WHEN turn.awake = 1 THEN 1
                ELSE heads.wanted
            END
        FROM heads
        WHERE turn.ctid = heads.place AND heads.seq IS NOT NULL
    ), added AS (
        INSERT INTO turn (lane, tenant, version, awake, time, due, seq)
        SELECT heads.lane, heads.tenant, nextval('turn_version'), heads.wanted, heads.time,
               heads.due, heads.seq
        FROM heads
        WHERE heads.place IS NULL AND heads.seq IS NOT NULL
    ), lanes AS (
        SELECT heads.lane, min(heads.due) AS due FROM heads GROUP BY heads.lane
    )
    SELECT array_agg(lanes.lane), array_agg(lanes.due) INTO lanes_, dues_ FROM lanes;
END
$$;

-- recount: the same, and the edges of the lanes follow.
CREATE OR REPLACE FUNCTION recount(lanes_ integer[], tenants_ text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    changed_ record;
BEGIN
    SELECT * INTO changed_ FROM recount_turns(lanes_, tenants_);
    PERFORM move_edges(changed_.lanes_, changed_.dues_);
END
$$;

-- move_edges: find the edges of lanes again, of which turns have changed since; none of these turns
-- is due before `dues_`. Lock: their queues.
CREATE OR REPLACE FUNCTION move_edges(lanes_ integer[], dues_ bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH exact AS MATERIALIZED (
        SELECT g.lane, e.place,
               first_due(g.lane, 1, coalesce(least(g.due, e.due), 0)) AS due,
               first_due(g.lane, 0, coalesce(least(g.due, e.asleep), 0)) AS asleep
        FROM (
            SELECT u.lane, min(u.due) AS due FROM unnest(lanes_, dues_) AS u(lane, due)
            GROUP BY u.lane
        ) AS g
        LEFT JOIN LATERAL (
            SELECT edge.ctid AS place, edge.due, edge.asleep
            FROM edge
            WHERE edge.lane = g.lane
            ORDER BY edge.version DESC
            LIMIT 1
        ) AS e ON true
    ), moved AS (
        UPDATE edge
        SET version = nextval('turn_version'), due = exact.due, asleep = exact.asleep
        FROM exact
        WHERE edge.ctid = exact.place
    )
    INSERT INTO edge (lane, version, time, due, asleep)
    SELECT exact.lane, nextval('turn_version'), 0, exact.due, exact.asleep
    FROM exact
    WHERE exact.place IS NULL;
END
$$;

-- first_due: when the first of a lane's turns falls due that are awake (1) or asleep (0); never, if
-- there is none. None is before `from_`. Index: turn_longest, turn_asleep.
CREATE OR REPLACE FUNCTION first_due(lane_ integer, awake_ integer, from_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    due_ bigint;
BEGIN
    IF awake_ = 1 THEN
        SELECT turn.due INTO due_
        FROM turn
        WHERE turn.lane = lane_ AND turn.awake = 1 AND turn.due >= 0 AND turn.due >= from_
        ORDER BY turn.due, turn.seq LIMIT 1;
    ELSE
        SELECT turn.due INTO due_
        FROM turn
        WHERE turn.lane = lane_ AND turn.awake = 0 AND turn.due >= from_
        ORDER BY turn.due, turn.seq LIMIT 1;
    END IF;
    RETURN coalesce(due_, 9223372036854775807);
END
$$;

-- first_place: where the first in line of a lane stands, or the clock: nobody comes in before it.
-- None is before `from_`. Index: turn_in_line.
CREATE OR REPLACE FUNCTION first_place(lane_ integer, from_ bigint, clock_ bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    time_ bigint;
BEGIN
    SELECT turn.time INTO time_
    FROM turn
    WHERE turn.lane = lane_ AND turn.awake = 1 AND turn.time >= 0 AND turn.time >= from_
    ORDER BY turn.time, turn.tenant LIMIT 1;
    RETURN least(time_, clock_);
END
$$;

-- keep_edges: write down the edges of the lanes that were touched, and give when the first of the
-- asked lanes' turns falls due. Nothing lives before the edges given; who fell asleep is due later
-- than now; and who comes next stands at the clock or after it.
CREATE OR REPLACE FUNCTION keep_edges(
    lanes_ integer[], asked_ boolean[], edges_ tid[], times_ bigint[], dues_ bigint[],
    asleeps_ bigint[], band_of_ integer[], clocks_ bigint[], touched_ integer[], now_ bigint
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    soonest_ bigint;
BEGIN
    WITH exact AS MATERIALIZED (
        SELECT l.place, l.lane, l.asked, l.touched,
               CASE WHEN l.touched THEN first_place(l.lane, l.time, l.clock) ELSE l.time END AS time,
               CASE WHEN l.touched THEN first_due(l.lane, 1, l.due) ELSE l.due END AS due,
               CASE WHEN l.touched THEN first_due(l.lane, 0, least(l.asleep, now_))
                    ELSE l.asleep END AS asleep
        FROM (
            SELECT u.lane, u.asked, u.place, u.time, u.due, u.asleep, clocks_[u.band] AS clock,
                   u.lane = ANY (touched_) AS touched
            FROM unnest(lanes_, asked_, edges_, times_, dues_, asleeps_, band_of_)
                 AS u(lane, asked, place, time, due, asleep, band)
        ) AS l
    ), moved AS (
        UPDATE edge
        SET version = nextval('turn_version'),
            time = exact.time,
            due = exact.due,
            asleep = exact.asleep
        FROM exact
        WHERE edge.ctid = exact.place
          AND exact.touched
          AND (edge.time, edge.due, edge.asleep) <> (exact.time, exact.due, exact.asleep)
    ), added AS (
        INSERT INTO edge (lane, version, time, due, asleep)
        SELECT exact.lane, nextval('turn_version'), exact.time, exact.due, exact.asleep
        FROM exact
        WHERE exact.place IS NULL AND exact.touched
    )
    SELECT min(least(exact.due, exact.asleep)) INTO soonest_ FROM exact WHERE exact.asked;
    RETURN nullif(soonest_, 9223372036854775807);
END
$$;

-- wake: put sleepers in line whose time has come, earliest first. Lock: the queue. Index: turn_asleep.
-- in   lanes_, asleeps_  the lanes of a band, and their edges among the sleepers
-- out  the lanes whose turns have changed
CREATE OR REPLACE FUNCTION wake(
    band_ integer, lanes_ integer[], asleeps_ bigint[], clock_ bigint, now_ bigint
) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    touched_ integer[];
BEGIN
    WITH rested AS MATERIALIZED (
        SELECT s.place,
               greatest(
                   coalesce((SELECT share.time FROM share
                             WHERE share.band = band_ AND share.tenant = s.tenant
                             ORDER BY share.time DESC LIMIT 1), 0),
                   clock_) AS time
        FROM (
            SELECT t.place, t.tenant
            FROM unnest(lanes_, asleeps_) AS l(lane, asleep)
            CROSS JOIN LATERAL (
                SELECT turn.ctid AS place, turn.tenant, turn.due, turn.seq
                FROM turn
                WHERE turn.lane = l.lane
                  AND turn.awake = 0
                  AND turn.due >= l.asleep
                  AND turn.due <= now_
                ORDER BY turn.due, turn.seq
                LIMIT 64
            ) AS t
            ORDER BY t.due, t.seq
            LIMIT 64
        ) AS s
    ), woken AS (
        UPDATE turn
        SET version = nextval('turn_version'), awake = 1, time = rested.time
        FROM rested
        WHERE turn.ctid = rested.place
        RETURNING turn.lane
    )
    SELECT array_agg(DISTINCT woken.lane) INTO touched_ FROM woken;
    RETURN touched_;
END
$$;

-- move_on: give turns that jobs were taken from their new heads and places. Lock: the queue.
-- in   one for each taken job: its turn, its lane and tenant, when it was due, its number, and the
--      tenant's time after it
CREATE OR REPLACE FUNCTION move_on(
    band_ integer, turns_ tid[], lanes_ integer[], tenants_ text[], dues_ bigint[],
    seqs_ bigint[], times_ bigint[], now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH shares AS MATERIALIZED (
        SELECT t.tenant, t.time,
               (SELECT share.ctid FROM share
                WHERE share.band = band_ AND share.tenant = t.tenant
                ORDER BY share.time DESC LIMIT 1) AS place
        FROM (
            SELECT u.tenant COLLATE "C" AS tenant, max(u.time) AS time
            FROM unnest(tenants_, times_) AS u(tenant, time)
            GROUP BY 1
        ) AS t
    ), charged AS (
        UPDATE share SET time = shares.time FROM shares WHERE share.ctid = shares.place
    )
    INSERT INTO share (band, tenant, time)
    SELECT band_, shares.tenant, shares.time FROM shares WHERE shares.place IS NULL;
    WITH left_behind AS MATERIALIZED (
        SELECT t.place, t.time, head.due, head.seq
        FROM (
            SELECT DISTINCT ON (u.place) u.place, u.lane, u.tenant COLLATE "C" AS tenant, u.due,
                   u.seq, max(u.time) OVER (PARTITION BY u.tenant COLLATE "C") AS time
            FROM unnest(turns_, lanes_, tenants_, dues_, seqs_, times_)
                 AS u(place, lane, tenant, due, seq, time)
            ORDER BY u.place, u.due DESC, u.seq DESC
        ) AS t
        LEFT JOIN LATERAL (
            SELECT job.due, job.seq
            FROM job
            WHERE job.lane = t.lane
              AND job.tenant = t.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) > (t.due, t.seq)
            ORDER BY job.due, job.seq
            LIMIT 1
        ) AS head ON true
    )
    UPDATE turn
    SET version = nextval('turn_version'),
        due = coalesce(l.due, turn.due),
        seq = coalesce(l.seq, turn.seq),
        time = l.time,
        -- An empty one stays, so that who looks for it need not look behind it.
        awake = CASE WHEN l.seq IS NULL THEN 3 WHEN l.due <= now_ THEN 1 ELSE 0 END
    FROM left_behind AS l
    WHERE turn.ctid = l.place;
END
$$;

-- charge: write down how far a tenant has come in a band. Lock: its queue.
-- in   share_   where that stands so far; NULL: nowhere
CREATE OR REPLACE FUNCTION charge(band_ integer, tenant_ text, share_ tid, time_ bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF share_ IS NULL THEN
        INSERT INTO share (band, tenant, time) VALUES (band_, tenant_, time_);
    ELSE
        UPDATE share SET time = time_ WHERE share.ctid = share_;
    END IF;
END
$$;

-- move_on_one: the same for a single turn, of which the last job taken was due at (due_, seq_).
CREATE OR REPLACE FUNCTION move_on_one(
    band_ integer, place_ tid, lane_ integer, tenant_ text, due_ bigint, seq_ bigint,
    time_ bigint, now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    share_ tid;
    head_ record;
BEGIN
    SELECT share.ctid INTO share_
    FROM share
    WHERE share.band = band_ AND share.tenant = tenant_
    ORDER BY share.time DESC
    LIMIT 1;
    PERFORM charge(band_, tenant_, share_, time_);
    SELECT job.due, job.seq INTO head_
    FROM job
    WHERE job.lane = lane_
      AND job.tenant = tenant_
      AND job.state = 'waiting'
      AND job.hold IS NULL
      AND (job.due, job.seq) > (due_, seq_)
    ORDER BY job.due, job.seq
    LIMIT 1;
    UPDATE turn
    SET version = nextval('turn_version'),
        due = coalesce(head_.due, turn.due),
        seq = coalesce(head_.seq, turn.seq),
        time = time_,
        awake = CASE WHEN head_.seq IS NULL THEN 3 WHEN head_.due <= now_ THEN 1 ELSE 0 END
    WHERE turn.ctid = place_;
END
$$;
