-- Turns that jobs have left, and the edges of their lanes. Claims do neither: what they take moves on.
-- Lock: their queues. Functions without settings of their own are called only by those that have them.

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
        SELECT DISTINCT g.lane, g.tenant COLLATE "C" AS tenant, 0 AS due, 0 AS seq
        FROM unnest(given_lanes_, given_tenants_) AS g(lane, tenant)
    ), heads AS MATERIALIZED (
        SELECT given.lane, given.tenant, head.due, head.seq, turn.place, turn.awake,
               greatest(tenant.time, coalesce((SELECT pulse.clock FROM (
                   @pulse_of(lane.band)@
               ) AS pulse), 0)) AS time,
               CASE WHEN tenant.held THEN @tenant_held@
                    WHEN head.due <= now_ THEN @in_line@
                    ELSE @asleep@ END AS wanted
        FROM given
        CROSS JOIN LATERAL (SELECT lane.band FROM lane WHERE lane.id = given.lane OFFSET 0) AS lane
        LEFT JOIN LATERAL (
            @turn_of(given.lane, given.tenant)@
        ) AS turn ON true
        LEFT JOIN LATERAL (
            @head_of(given)@
        ) AS head ON true
        @tenant_of(lane.band, given.tenant)@ AS tenant
    ), gone AS (
        DELETE FROM turn
        WHERE turn.ctid = ANY (ARRAY(SELECT heads.place FROM heads WHERE heads.seq IS NULL))
    ), moved AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = heads.due,
            seq = heads.seq,
            time = CASE WHEN turn.awake = @in_line@ THEN turn.time ELSE heads.time END,
            awake = CASE
                WHEN turn.awake = @tenant_held@ THEN turn.awake
                WHEN turn.awake = @in_line@ AND heads.due > now_ THEN @asleep@
                WHEN turn.awake = @in_line@ THEN turn.awake
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
               @first_due(g.lane, since.due)@ AS due,
               @first_asleep(g.lane, since.asleep)@ AS asleep
        FROM (
            SELECT u.lane, min(u.due) AS due FROM unnest(lanes_, dues_) AS u(lane, due)
            GROUP BY u.lane
        ) AS g
        LEFT JOIN LATERAL (
            @edge_of(g.lane)@
        ) AS e ON true
        CROSS JOIN LATERAL (
            SELECT coalesce(least(g.due, e.due), 0) AS due,
                   coalesce(least(g.due, e.asleep), 0) AS asleep
        ) AS since
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
