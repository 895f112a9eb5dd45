-- Turns: who waits in which lane. The lock of a queue guards its turns and its waiting jobs.

-- lock_queues: take the locks of these queues, always in the same order, until the transaction ends.
CREATE OR REPLACE FUNCTION lock_queues(queues_ text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    name_ text;
BEGIN
    FOR name_ IN SELECT DISTINCT q COLLATE "C" FROM unnest(queues_) AS q ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || name_, 0));
    END LOOP;
END
$$;

-- recount: find the heads of turns that jobs have left. Lock: their queues. Index: job_waiting.
-- An awake turn whose head is due later falls asleep; an empty one is gone. What had arrived in
-- these turns counts as folded, for its jobs may be the ones that left.
CREATE OR REPLACE FUNCTION recount(lanes_ integer[], tenants_ text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    WITH given AS (
        SELECT DISTINCT g.lane, g.tenant COLLATE "C" AS tenant
        FROM unnest(lanes_, tenants_) AS g(lane, tenant)
    ), folded AS (
        DELETE FROM arrival
        USING given
        WHERE arrival.lane = given.lane AND arrival.tenant = given.tenant
    ), heads AS (
        SELECT given.lane, given.tenant, head.due, head.seq
        FROM given
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
        USING heads
        WHERE turn.lane = heads.lane AND turn.tenant = heads.tenant AND heads.seq IS NULL
    )
    INSERT INTO turn (lane, tenant, awake, time, due, seq)
    SELECT heads.lane,
           heads.tenant,
           CASE WHEN tenant.hold IS NOT NULL THEN 2 WHEN heads.due <= now_ THEN 1 ELSE 0 END,
           greatest(coalesce(share.time, 0), band.clock),
           heads.due,
           heads.seq
    FROM heads
    JOIN lane ON lane.id = heads.lane
    JOIN band ON band.id = lane.band
    LEFT JOIN tenant ON tenant.name = heads.tenant
    LEFT JOIN share ON share.band = lane.band AND share.tenant = heads.tenant
    WHERE heads.seq IS NOT NULL
    ON CONFLICT (lane, tenant) DO UPDATE
    SET due = excluded.due,
        seq = excluded.seq,
        time = CASE WHEN turn.awake = 1 THEN turn.time ELSE excluded.time END,
        awake = CASE
            WHEN turn.awake = 1 AND excluded.due > now_ THEN 0
            WHEN turn.awake = 0 THEN excluded.awake
            ELSE turn.awake
        END;
END
$$;

-- fold: let the turns of a band know of the jobs that have arrived. Lock: its queue.
-- Bounded; what is left is seen by the next claim, which is told to come at once.
CREATE OR REPLACE FUNCTION fold(band_ integer, lanes_ integer[], clock_ bigint, now_ bigint)
RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    WITH arrived AS (
        DELETE FROM arrival
        WHERE arrival.ctid = ANY (ARRAY(
            SELECT a.ctid
            FROM unnest(lanes_) AS l(lane)
            CROSS JOIN LATERAL (
                SELECT arrival.ctid FROM arrival WHERE arrival.lane = l.lane LIMIT 1000
            ) AS a
            LIMIT 1000
        ))
        RETURNING arrival.lane, arrival.tenant, arrival.due, arrival.seq
    ), heads AS (
        SELECT DISTINCT ON (arrived.lane, arrived.tenant)
               arrived.lane, arrived.tenant, arrived.due, arrived.seq
        FROM arrived
        ORDER BY arrived.lane, arrived.tenant, arrived.due, arrived.seq
    )
    INSERT INTO turn (lane, tenant, awake, time, due, seq)
    SELECT heads.lane,
           heads.tenant,
           CASE WHEN tenant.hold IS NOT NULL THEN 2 WHEN heads.due <= now_ THEN 1 ELSE 0 END,
           greatest(coalesce(share.time, 0), clock_),
           heads.due,
           heads.seq
    FROM heads
    LEFT JOIN tenant ON tenant.name = heads.tenant
    LEFT JOIN share ON share.band = band_ AND share.tenant = heads.tenant
    ON CONFLICT (lane, tenant) DO UPDATE
    SET due = excluded.due,
        seq = excluded.seq,
        time = CASE WHEN turn.awake = 1 THEN turn.time ELSE excluded.time END,
        awake = CASE WHEN turn.awake = 0 THEN excluded.awake ELSE turn.awake END
    WHERE (excluded.due, excluded.seq) < (turn.due, turn.seq);
END
$$;

-- wake: put sleepers in line whose time has come, earliest first. Lock: the queue. Index: turn_asleep.
CREATE OR REPLACE FUNCTION wake(band_ integer, lanes_ integer[], clock_ bigint, now_ bigint)
RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    WITH rested AS (
        SELECT s.lane, s.tenant
        FROM unnest(lanes_) AS l(lane)
        CROSS JOIN LATERAL (
            SELECT turn.lane, turn.tenant, turn.due, turn.seq
            FROM turn
            WHERE turn.lane = l.lane AND turn.awake = 0 AND turn.due <= now_
            ORDER BY turn.due, turn.seq
            LIMIT 64
        ) AS s
        ORDER BY s.due, s.seq
        LIMIT 64
    )
    UPDATE turn
    SET awake = 1,
        time = greatest(
            coalesce((SELECT share.time FROM share
                      WHERE share.band = band_ AND share.tenant = turn.tenant), 0),
            clock_)
    FROM rested
    WHERE turn.lane = rested.lane AND turn.tenant = rested.tenant;
END
$$;
