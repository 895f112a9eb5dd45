-- overview: reads of what is there as a whole: states, queues, tenants, types, workers.
--
-- Like those of inspect.sql they change nothing, take no lock, see one moment and are bounded.

-- read_counts: jobs per state, each counted up to `limit_`, by an index that has only them.
CREATE OR REPLACE FUNCTION read_counts(limit_ integer)
RETURNS TABLE (state text, number bigint)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT 'waiting', count(*) FROM (
        (SELECT FROM job WHERE job.state = 'waiting' AND job.hold IS NULL LIMIT limit_)
        UNION ALL
        (SELECT FROM job WHERE job.state = 'waiting' AND job.hold IS NOT NULL LIMIT limit_)
    ) AS one
    UNION ALL
    SELECT 'blocked', count(*) FROM (
        SELECT FROM job WHERE job.state = 'blocked' LIMIT limit_) AS one
    UNION ALL
    SELECT 'running', count(*) FROM (
        SELECT FROM job WHERE job.state = 'running' LIMIT limit_) AS one
    UNION ALL
    SELECT 'succeeded', count(*) FROM (
        SELECT FROM done WHERE done.state = 'succeeded' LIMIT limit_) AS one
    UNION ALL
    SELECT 'cancelled', count(*) FROM (
        SELECT FROM done WHERE done.state = 'cancelled' LIMIT limit_) AS one
    UNION ALL
    SELECT 'expired', count(*) FROM (
        SELECT FROM done WHERE done.state = 'expired' LIMIT limit_) AS one
    UNION ALL
    SELECT 'dead', count(*) FROM (SELECT FROM dead LIMIT limit_) AS one
$$;

-- waiting_in: waiting jobs of some lanes, due and not, each counted up to `limit_`.
-- Index: job_waiting. If there are too many to look at them all, one of the two is beyond the
-- limit anyway, and mostly both are: three times as many are looked at. Else the other is looked
-- for where turns and arrivals say that it may be, which takes longer.
CREATE OR REPLACE FUNCTION waiting_in(
    lanes_ integer[], now_ bigint, limit_ integer, OUT ready bigint, OUT scheduled bigint
)
LANGUAGE plpgsql STABLE @bounded@ AS $$
BEGIN
    SELECT count(*) FILTER (WHERE one.due <= now_), count(*) FILTER (WHERE one.due > now_)
    INTO ready, scheduled
    FROM (
        SELECT waiting.due
        FROM unnest(lanes_) AS l(lane)
        CROSS JOIN LATERAL (
            SELECT job.due FROM job
            WHERE job.lane = l.lane AND job.state = 'waiting' AND job.hold IS NULL
            ORDER BY job.tenant, job.due, job.seq
            LIMIT 3 * limit_
        ) AS waiting
        LIMIT 3 * limit_
    ) AS one;
    IF ready + scheduled < 3 * limit_ THEN
        RETURN;
    END IF;
    IF ready < limit_ THEN
        ready := greatest(ready, waiting_between(lanes_, -1, now_, limit_));
    ELSIF scheduled < limit_ THEN
        scheduled := greatest(scheduled, waiting_between(lanes_, now_, 1::bigint << 62, limit_));
    END IF;
END
$$;

-- waiting_between: waiting jobs that fall due after one instant and not after another, counted up
-- to `limit_`, of as many turns. Index: turn_asleep, turn_longest, arrival_new, job_waiting.
CREATE OR REPLACE FUNCTION waiting_between(
    lanes_ integer[], after_ bigint, until_ bigint, limit_ integer
) RETURNS bigint
LANGUAGE sql STABLE @bounded@
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT count(*)
    FROM (
        SELECT
        FROM (
            SELECT DISTINCT t.lane, t.tenant
            FROM unnest(lanes_) AS l(lane)
            CROSS JOIN LATERAL (
                (SELECT turn.lane, turn.tenant FROM turn
                 WHERE turn.lane = l.lane AND turn.awake = @asleep@ AND turn.due <= until_
                 ORDER BY turn.due, turn.seq LIMIT limit_)
                UNION ALL
                (SELECT turn.lane, turn.tenant FROM turn
                 WHERE turn.lane = l.lane AND turn.awake = @in_line@ AND turn.due >= 0 AND turn.due <= until_
                 ORDER BY turn.due, turn.seq LIMIT limit_)
                UNION ALL
                (SELECT arrival.lane, arrival.tenant FROM arrival
                 WHERE arrival.lane = l.lane AND arrival.due <= until_
                 LIMIT limit_)
            ) AS t
        ) AS turns
        CROSS JOIN LATERAL (
            SELECT FROM job
            WHERE job.lane = turns.lane AND job.tenant = turns.tenant
              AND job.state = 'waiting' AND job.hold IS NULL
              AND job.due > after_ AND job.due <= until_
            ORDER BY job.due, job.seq
            LIMIT limit_
        ) AS waiting
        LIMIT limit_
    ) AS one
$$;

-- oldest_head: the job that has been due for longest, of tenants that are not held.
-- Turns and arrivals say where to look; the job itself is what counts. Arrivals are told to turns by
-- every claim, so that of each lane the first 20 are enough to look at.
CREATE OR REPLACE FUNCTION oldest_head(lanes_ integer[], now_ bigint)
RETURNS TABLE (id uuid, lane integer, due bigint)
LANGUAGE sql STABLE @bounded@
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT head.id, turns.lane, head.due
    FROM (
        SELECT DISTINCT t.lane, t.tenant
        FROM unnest(lanes_) AS l(lane)
        CROSS JOIN LATERAL (
            (SELECT turn.lane, turn.tenant FROM turn
             WHERE turn.lane = l.lane AND turn.awake = @in_line@ AND turn.due >= 0 AND turn.due <= now_
             ORDER BY turn.due, turn.seq LIMIT 10)
            UNION ALL
            (SELECT turn.lane, turn.tenant FROM turn
             WHERE turn.lane = l.lane AND turn.awake = @asleep@ AND turn.due <= now_
             ORDER BY turn.due, turn.seq LIMIT 10)
            UNION ALL
            (SELECT heard.lane, heard.tenant
             FROM (SELECT * FROM arrival WHERE arrival.lane = l.lane
                   ORDER BY arrival.xact LIMIT 20) AS heard
             LEFT JOIN tenant ON tenant.name = heard.tenant
             WHERE heard.due <= now_ AND tenant.hold IS NULL
             ORDER BY heard.due, heard.seq LIMIT 10)
        ) AS t
    ) AS turns
    CROSS JOIN LATERAL (
        SELECT job.id, job.due, job.seq FROM job
        WHERE job.lane = turns.lane AND job.tenant = turns.tenant
          AND job.state = 'waiting' AND job.hold IS NULL
          AND job.due <= now_
        ORDER BY job.due, job.seq
        LIMIT 1
    ) AS head
    ORDER BY head.due, head.seq
    LIMIT 1
$$;

-- read_queues: queues by name, or the one of that name, a row for each level that ever had jobs;
-- with a limit of 0 without looking at any job.
-- Index: job_running.
CREATE OR REPLACE FUNCTION read_queues(now_ bigint, limit_ integer, name_ text DEFAULT NULL)
RETURNS TABLE (
    name text, handouts bigint, max_wait bigint, hold text, level smallint, ready bigint,
    scheduled bigint, running bigint, oldest bigint, removed boolean
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT queue.name,
           coalesce((SELECT handed.handouts FROM handed WHERE handed.queue = queue.name
                     ORDER BY handed.handouts DESC LIMIT 1), 0),
           queue.max_wait, queue.hold, level.level, waiting.ready,
           waiting.scheduled, running.number,
           (SELECT oldest.due FROM oldest_head(level.lanes, now_) AS oldest), queue.removed
    FROM queue
    LEFT JOIN (
        SELECT lane.queue, lane.level, array_agg(lane.id) AS lanes
        FROM lane
        WHERE name_ IS NULL OR lane.queue = name_
        GROUP BY lane.queue, lane.level
    ) AS level ON level.queue = queue.name AND limit_ > 0
    LEFT JOIN (
        SELECT lane.queue, lane.level, sum(one.number)::bigint AS number
        FROM (
            SELECT job.lane, count(*) AS number FROM job WHERE job.state = 'running'
            GROUP BY job.lane
        ) AS one
        JOIN lane ON lane.id = one.lane
        GROUP BY lane.queue, lane.level
    ) AS running ON running.queue = level.queue AND running.level = level.level
    LEFT JOIN LATERAL waiting_in(level.lanes, now_, limit_) AS waiting ON true
    WHERE name_ IS NULL OR queue.name = name_
    ORDER BY queue.name, level.level
$$;

-- read_standing: how many waiting jobs are held, counted up to `limit_`; the job that has been due
-- for longest; and when the first schedule is to be looked at. Index: job_held, schedule_wake.
CREATE OR REPLACE FUNCTION read_standing(
    now_ bigint, limit_ integer,
    OUT held bigint, OUT oldest uuid, OUT queue text, OUT due bigint, OUT wake bigint
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT (SELECT count(*) FROM (
                SELECT FROM job WHERE job.state = 'waiting' AND job.hold IS NOT NULL LIMIT limit_
            ) AS one),
           head.id, lane.queue, head.due,
           (SELECT schedule.wake FROM schedule
            WHERE schedule.wake IS NOT NULL AND schedule.hold IS NULL
            ORDER BY schedule.wake LIMIT 1)
    FROM (SELECT array_agg(lane.id) AS lanes FROM lane) AS every
    LEFT JOIN LATERAL oldest_head(every.lanes, now_) AS head ON true
    LEFT JOIN lane ON lane.id = head.lane
$$;

-- waiting_tenants: what tenants have waiting, each counted up to `count_`; of very many the first
-- `limit_` by name. Index: job_waiting.
-- Up to `most_` jobs it counts them as they stand in the index. Of more, it takes the first names of
-- each lane, jumping from one to the next, and counts behind each.
CREATE OR REPLACE FUNCTION waiting_tenants(limit_ integer, count_ integer, most_ integer)
RETURNS TABLE (tenant text, number bigint)
LANGUAGE plpgsql STABLE @bounded@ AS $$
DECLARE
    names_ text[];
    numbers_ bigint[];
    seen_ numeric;
BEGIN
    SELECT array_agg(every.name), array_agg(least(every.number, count_)::bigint), sum(every.number)
    INTO names_, numbers_, seen_
    FROM (
        SELECT turns.tenant AS name, sum(turns.number) AS number
        FROM (
            SELECT one.lane, one.tenant, count(*) AS number
            FROM (
                SELECT job.lane, job.tenant FROM job
                WHERE job.state = 'waiting' AND job.hold IS NULL
                ORDER BY job.lane, job.tenant
                LIMIT most_ + 1
            ) AS one
            GROUP BY one.lane, one.tenant
        ) AS turns
        GROUP BY turns.tenant
    ) AS every;
    IF seen_ IS NULL OR seen_ <= most_ THEN
        RETURN QUERY SELECT * FROM unnest(names_, numbers_);
        RETURN;
    END IF;
    RETURN QUERY WITH RECURSIVE turns AS (
        SELECT lane.id AS lane, head.tenant, 1 AS nth
        FROM lane
        CROSS JOIN LATERAL (
            SELECT job.tenant FROM job
            WHERE job.lane = lane.id AND job.state = 'waiting' AND job.hold IS NULL
            ORDER BY job.tenant LIMIT 1
        ) AS head
        UNION ALL
        SELECT turns.lane, head.tenant, turns.nth + 1
        FROM turns
        CROSS JOIN LATERAL (
            SELECT job.tenant FROM job
            WHERE job.lane = turns.lane AND job.tenant > turns.tenant
              AND job.state = 'waiting' AND job.hold IS NULL
            ORDER BY job.tenant LIMIT 1
        ) AS head
        WHERE turns.nth < limit_
    ), named AS (
        SELECT DISTINCT turns.tenant FROM turns ORDER BY turns.tenant LIMIT limit_
    )
    SELECT turns.tenant, least(sum(one.number), count_)::bigint
    FROM turns
    CROSS JOIN LATERAL (
        SELECT count(*) AS number
        FROM (
            SELECT FROM job
            WHERE job.lane = turns.lane AND job.tenant = turns.tenant
              AND job.state = 'waiting' AND job.hold IS NULL
            ORDER BY job.due, job.seq
            LIMIT count_
        ) AS job
    ) AS one
    WHERE turns.tenant <= (SELECT max(named.tenant) FROM named)
    GROUP BY turns.tenant;
END
$$;

-- read_tenants: the first `limit_` tenants by name that have settings, waiting or running jobs.
CREATE OR REPLACE FUNCTION read_tenants(limit_ integer, count_ integer, most_ integer)
RETURNS TABLE (name text, weight integer, hold text, waiting bigint, running bigint)
LANGUAGE sql STABLE @bounded@ AS $$
    WITH queued AS MATERIALIZED (
        SELECT * FROM waiting_tenants(limit_, count_, most_)
    ), busy AS (
        SELECT job.tenant, count(*) AS number FROM job WHERE job.state = 'running'
        GROUP BY job.tenant
    ), named AS (
        SELECT every.name
        FROM (
            (SELECT tenant.name FROM tenant ORDER BY tenant.name LIMIT limit_)
            UNION
            SELECT queued.tenant FROM queued
            UNION
            SELECT busy.tenant FROM busy
        ) AS every
        ORDER BY every.name
        LIMIT limit_
    )
    SELECT named.name, coalesce(tenant.weight, 1), tenant.hold,
           coalesce(queued.number, 0), coalesce(busy.number, 0)
    FROM named
    LEFT JOIN tenant ON tenant.name = named.name
    LEFT JOIN queued ON queued.tenant = named.name
    LEFT JOIN busy ON busy.tenant = named.name
    ORDER BY named.name
$$;

-- read_tenant: a tenant's settings, if it has any, and its jobs; those that wait are counted up to
-- `count_`. Index: job_waiting, job_running.
CREATE OR REPLACE FUNCTION read_tenant(
    name_ text, count_ integer,
    OUT weight integer, OUT hold text, OUT waiting bigint, OUT running bigint
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT (SELECT tenant.weight FROM tenant WHERE tenant.name = name_),
           (SELECT tenant.hold FROM tenant WHERE tenant.name = name_),
           (SELECT count(*) FROM (
               SELECT
               FROM lane
               CROSS JOIN LATERAL (
                   SELECT FROM job
                   WHERE job.lane = lane.id AND job.tenant = name_
                     AND job.state = 'waiting' AND job.hold IS NULL
                   ORDER BY job.due, job.seq
                   LIMIT count_
               ) AS one
               LIMIT count_
           ) AS every),
           (SELECT count(*) FROM job WHERE job.state = 'running' AND job.tenant = name_)
$$;

-- read_types: published types by name, last seen first; a worker lives that beat after `since_`.
CREATE OR REPLACE FUNCTION read_types(since_ bigint)
RETURNS TABLE (
    name text, queue text, schema text, hash text, options text, hold text, live_workers bigint,
    seats text
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off AS $$
    SELECT version.name, version.queue, version.schema, version.hash, version.options,
           type_setting.hold, coalesce(live.number, 0), coalesce(live.seats, '[]')
    FROM type_version AS version
    LEFT JOIN type_setting ON type_setting.name = version.name
    LEFT JOIN (
        SELECT seat.name, seat.hash, sum(seat.number)::bigint AS number,
               json_agg(json_build_array(seat.version_slot, seat.queues::json, seat.number))::text
                   AS seats
        FROM (
            SELECT worker_type.name, worker_type.hash, worker.version_slot, worker.queues,
                   count(*) AS number
            FROM worker_type
            JOIN worker ON worker.id = worker_type.worker
            WHERE worker.beat > since_
            GROUP BY worker_type.name, worker_type.hash, worker.version_slot, worker.queues
        ) AS seat
        GROUP BY seat.name, seat.hash
    ) AS live ON live.name = version.name AND live.hash = version.hash
    ORDER BY version.name, version.seen DESC, version.hash
$$;

-- read_workers: workers, oldest first, with the names of the types they know.
CREATE OR REPLACE FUNCTION read_workers()
RETURNS TABLE (
    id text, host text, pid integer, queues text, types text[], slots integer, running integer,
    joined bigint, beat bigint, version_slot integer
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off AS $$
    SELECT worker.id, worker.host, worker.pid, worker.queues, known.types, worker.slots,
           worker.running, worker.joined, worker.beat, worker.version_slot
    FROM worker
    LEFT JOIN (
        SELECT worker_type.worker, array_agg(worker_type.name ORDER BY worker_type.name) AS types
        FROM worker_type GROUP BY worker_type.worker
    ) AS known ON known.worker = worker.id
    ORDER BY worker.joined, worker.id
$$;

-- read_around: what decides about a waiting job beside itself; see port/reasons.py.
-- Of its own turn up to `limit_` jobs before it are counted. Index: job_waiting.
CREATE OR REPLACE FUNCTION read_around(
    queue_ text, type_ text, tenant_ text, lane_ integer, due_ bigint, seq_ bigint,
    limit_ integer,
    OUT queue_hold text, OUT type_hold text, OUT tenant_hold text, OUT behind bigint,
    OUT workers json, OUT requirement text
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT (SELECT queue.hold FROM queue WHERE queue.name = queue_),
           (SELECT type_setting.hold FROM type_setting WHERE type_setting.name = type_),
           (SELECT tenant.hold FROM tenant WHERE tenant.name = tenant_),
           (SELECT count(*) FROM (
               SELECT FROM job
               WHERE job.lane = lane_ AND job.tenant = tenant_
                 AND job.state = 'waiting' AND job.hold IS NULL
                 AND (job.due, job.seq) < (due_, seq_)
               ORDER BY job.due, job.seq
               LIMIT limit_
           ) AS before),
           (SELECT json_agg(json_build_array(w.id, w.host, w.pid, w.queues, w.types, w.slots,
                                             w.running, w.joined, w.beat, w.version_slot))
            FROM read_workers() AS w),
           (SELECT lane.requirement FROM lane WHERE lane.id = lane_)
$$;
