-- claim: hand out due jobs, fairly, in the order of model/stride.py.
-- Lock: the asked queues, ascending, before anything is read. Guard: state = 'waiting' under it.
--
-- Inside a (queue, level) the order can be written as a set. A tenant's turns there share one
-- virtual time, and no awake turn stands beyond max(that time, clock). So of a tenant that is first
-- at place p the next hand-outs stand at
--     p,  max(p, clock) + step 1,  max(p, clock) + step 1 + step 2, …
-- and from the second on its lanes follow each other by (due, seq). All tenants' places, sorted by
-- (place, tenant), are the line.

-- take_in_line: hand out up to `room_` jobs of one band, asked lanes only, that are next in line.
CREATE OR REPLACE FUNCTION take_in_line(
    band_ integer, lanes_ integer[], now_ bigint, room_ integer, bytes_ bigint,
    first_ bigint, nonce_ text, worker_ text, lease_ms_ bigint, quiet_ integer
) RETURNS SETOF job
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    clock_ bigint;
    last_ bigint;
    horizon_ bigint;
    tenants_ text[];
    places_ bigint[];
    weights_ integer[];
    lanes_of_ integer[];
    dues_ bigint[];
    seqs_ bigint[];
    more_ boolean;
    ids_ uuid[];
    numbers_ bigint[];
    taken_lanes_ integer[];
    taken_tenants_ text[];
    times_ bigint[];
BEGIN
    SELECT band.clock INTO clock_ FROM band WHERE band.id = band_;
    -- Another lane may have moved a tenant on since its turn here woke.
    FOR _ IN 1..8 LOOP
        UPDATE turn
        SET time = behind.time
        FROM (
            SELECT t.lane, t.tenant, share.time
            FROM unnest(lanes_) AS l(lane)
            CROSS JOIN LATERAL (
                SELECT turn.lane, turn.tenant, turn.time
                FROM turn
                WHERE turn.lane = l.lane AND turn.awake = 1
                ORDER BY turn.time, turn.tenant
                LIMIT room_
            ) AS t
            JOIN share ON share.band = band_ AND share.tenant = t.tenant AND share.time > t.time
        ) AS behind
        WHERE turn.lane = behind.lane AND turn.tenant = behind.tenant;
        EXIT WHEN NOT FOUND;
    END LOOP;
    -- The tenants that stand first, each with its first turn.
    SELECT array_agg(f.tenant), array_agg(f.time), array_agg(f.weight), array_agg(f.lane),
           array_agg(f.due), array_agg(f.seq), max(f.time), count(*) >= room_
    INTO tenants_, places_, weights_, lanes_of_, dues_, seqs_, horizon_, more_
    FROM (
        SELECT g.tenant, g.time, g.lane, g.due, g.seq, coalesce(tenant.weight, 1) AS weight
        FROM (
            SELECT DISTINCT ON (t.tenant) t.tenant, t.time, t.lane, t.due, t.seq
            FROM unnest(lanes_) AS l(lane)
            CROSS JOIN LATERAL (
                SELECT turn.lane, turn.tenant, turn.time, turn.due, turn.seq
                FROM turn
                WHERE turn.lane = l.lane AND turn.awake = 1
                ORDER BY turn.time, turn.tenant
                LIMIT room_
            ) AS t
            ORDER BY t.tenant, t.time, t.due, t.seq
        ) AS g
        LEFT JOIN tenant ON tenant.name = g.tenant
        ORDER BY g.time, g.tenant
        LIMIT room_
    ) AS f;
    IF tenants_ IS NULL THEN
        RETURN;
    END IF;
    IF NOT more_ THEN
        horizon_ := NULL;
    END IF;
    -- Their due jobs with the places at which they would be handed out; the first `room_` win.
    WITH standing AS (
        SELECT s.tenant COLLATE "C" AS tenant, s.place, s.weight, s.lane, s.due, s.seq,
               CASE WHEN horizon_ IS NULL THEN room_ ELSE least(room_,
                   2 + greatest(0, horizon_ - greatest(s.place, clock_))
                       / greatest(1, 1000000 / s.weight)) END AS most
        FROM unnest(tenants_, places_, weights_, lanes_of_, dues_, seqs_)
             AS s(tenant, place, weight, lane, due, seq)
    ), waiting AS (
        SELECT standing.tenant, standing.place, standing.weight, w.id, w.lane, w.due, w.seq,
               w.cost, w.size,
               row_number() OVER (
                   PARTITION BY standing.tenant
                   ORDER BY (w.lane = standing.lane AND w.due = standing.due
                             AND w.seq = standing.seq) DESC, w.due, w.seq
               ) AS nth
        FROM standing
        CROSS JOIN unnest(lanes_) AS l(lane)
        JOIN turn ON turn.lane = l.lane AND turn.tenant = standing.tenant AND turn.awake = 1
        CROSS JOIN LATERAL (
            SELECT job.id, job.lane, job.due, job.seq, job.cost, job.size
            FROM job
            WHERE job.lane = turn.lane
              AND job.tenant = turn.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (turn.due, turn.seq)
              AND job.due <= now_
            ORDER BY job.due, job.seq
            LIMIT standing.most
        ) AS w
    ), placed AS (
        SELECT waiting.tenant, waiting.id, waiting.lane, waiting.due, waiting.seq, waiting.size,
               CASE WHEN waiting.nth = 1 THEN waiting.place ELSE
                   greatest(waiting.place, clock_)
                   + (sum(1000000::bigint * waiting.cost / waiting.weight) OVER earlier)::bigint
               END AS place,
               greatest(waiting.place, clock_)
               + (sum(1000000::bigint * waiting.cost / waiting.weight) OVER upto)::bigint AS after
        FROM waiting
        WINDOW earlier AS (PARTITION BY waiting.tenant ORDER BY waiting.nth
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
               upto AS (PARTITION BY waiting.tenant ORDER BY waiting.nth)
    ), line AS (
        SELECT placed.*,
               row_number() OVER (ORDER BY placed.place, placed.tenant) AS number,
               coalesce(sum(placed.size) OVER (
                   ORDER BY placed.place, placed.tenant
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
        FROM placed
    ), taken AS (
        SELECT line.* FROM line
        WHERE line.number <= room_ AND (line.number = 1 OR line.before < bytes_)
    )
    SELECT array_agg(taken.id ORDER BY taken.number),
           array_agg(first_ + taken.number ORDER BY taken.number),
           array_agg(taken.lane ORDER BY taken.number),
           array_agg(taken.tenant ORDER BY taken.number),
           array_agg(taken.after ORDER BY taken.number),
           max(taken.place) FILTER (WHERE quiet_ = 0 OR (first_ + taken.number) % 10 <> 0)
    INTO ids_, numbers_, taken_lanes_, taken_tenants_, times_, last_
    FROM taken;
    IF ids_ IS NULL THEN
        -- Heads that are not due, or jobs that are gone: whoever stands here does so in vain.
        PERFORM recount(
            (SELECT array_agg(turn.lane) FROM turn
             WHERE turn.lane = ANY (lanes_) AND turn.tenant = ANY (tenants_) AND turn.awake = 1),
            (SELECT array_agg(turn.tenant) FROM turn
             WHERE turn.lane = ANY (lanes_) AND turn.tenant = ANY (tenants_) AND turn.awake = 1));
        RETURN;
    END IF;
    UPDATE band SET clock = greatest(clock_, last_) WHERE band.id = band_ AND last_ > clock_;
    INSERT INTO share (band, tenant, time)
    SELECT band_, t.tenant, max(t.time)
    FROM unnest(taken_tenants_, times_) AS t(tenant, time)
    GROUP BY t.tenant
    ON CONFLICT (band, tenant) DO UPDATE SET time = excluded.time;
    RETURN QUERY
        UPDATE job
        SET state = 'running',
            lease = job.lease + 1,
            nonce = nonce_,
            worker = worker_,
            handout = t.number,
            claimed = now_,
            expires = now_ + lease_ms_,
            lease_ms = lease_ms_
        FROM unnest(ids_, numbers_) AS t(id, number)
        WHERE job.id = t.id
        RETURNING job.*;
    PERFORM move_on(band_, taken_lanes_, taken_tenants_, now_);
END
$$;

-- move_on: give turns that jobs were taken from their new heads and places. Lock: the queue.
CREATE OR REPLACE FUNCTION move_on(
    band_ integer, lanes_ integer[], tenants_ text[], now_ bigint
) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    WITH touched AS (
        SELECT DISTINCT t.lane, t.tenant COLLATE "C" AS tenant
        FROM unnest(lanes_, tenants_) AS t(lane, tenant)
    ), heads AS (
        SELECT touched.lane, touched.tenant, share.time, head.due, head.seq
        FROM touched
        JOIN turn ON turn.lane = touched.lane AND turn.tenant = touched.tenant
        JOIN share ON share.band = band_ AND share.tenant = touched.tenant
        LEFT JOIN LATERAL (
            SELECT job.due, job.seq
            FROM job
            WHERE job.lane = touched.lane
              AND job.tenant = touched.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (turn.due, turn.seq)
            ORDER BY job.due, job.seq
            LIMIT 1
        ) AS head ON true
    ), gone AS (
        DELETE FROM turn
        USING heads
        WHERE turn.lane = heads.lane AND turn.tenant = heads.tenant AND heads.seq IS NULL
    )
    UPDATE turn
    SET due = heads.due,
        seq = heads.seq,
        time = heads.time,
        awake = CASE WHEN heads.due <= now_ THEN 1 ELSE 0 END
    FROM heads
    WHERE turn.lane = heads.lane AND turn.tenant = heads.tenant AND heads.seq IS NOT NULL;
END
$$;

-- take_longest: hand out the job that has been due longest, if since before `before_`.
-- Charged like any other, but it leaves the clock alone.
CREATE OR REPLACE FUNCTION take_longest(
    lanes_ integer[], now_ bigint, before_ bigint, number_ bigint,
    nonce_ text, worker_ text, lease_ms_ bigint
) RETURNS SETOF job
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    found_ record;
BEGIN
    SELECT t.lane, t.tenant, lane.band, j.id, j.cost, band.clock,
           coalesce(share.time, 0) AS time, coalesce(tenant.weight, 1) AS weight
    INTO found_
    FROM unnest(lanes_) AS l(lane)
    CROSS JOIN LATERAL (
        SELECT turn.lane, turn.tenant, turn.due, turn.seq
        FROM turn
        WHERE turn.lane = l.lane AND turn.awake = 1 AND turn.due < before_
        ORDER BY turn.due, turn.seq
        LIMIT 1
    ) AS t
    JOIN lane ON lane.id = t.lane
    JOIN band ON band.id = lane.band
    CROSS JOIN LATERAL (
        SELECT job.id, job.cost
        FROM job
        WHERE job.lane = t.lane
          AND job.tenant = t.tenant
          AND job.state = 'waiting'
          AND job.hold IS NULL
          AND (job.due, job.seq) >= (t.due, t.seq)
          AND job.due <= now_
        ORDER BY job.due, job.seq
        LIMIT 1
    ) AS j
    LEFT JOIN share ON share.band = lane.band AND share.tenant = t.tenant
    LEFT JOIN tenant ON tenant.name = t.tenant
    ORDER BY t.due, t.seq
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO share (band, tenant, time)
    VALUES (found_.band, found_.tenant, greatest(found_.time, found_.clock)
                                        + 1000000::bigint * found_.cost / found_.weight)
    ON CONFLICT (band, tenant) DO UPDATE SET time = excluded.time;
    RETURN QUERY
        UPDATE job
        SET state = 'running',
            lease = job.lease + 1,
            nonce = nonce_,
            worker = worker_,
            handout = number_,
            claimed = now_,
            expires = now_ + lease_ms_,
            lease_ms = lease_ms_
        WHERE job.id = found_.id
        RETURNING job.*;
    PERFORM move_on(found_.band, ARRAY[found_.lane], ARRAY[found_.tenant], now_);
END
$$;

-- claim: see above. The first row has no job: it tells when to come again, and names the lanes.
CREATE OR REPLACE FUNCTION claim(
    nonce_ text, worker_ text, queues_ text[], quotas_ integer[], types_ text[],
    requirements_ text[], limit_ integer, lease_ms_ bigint, max_bytes_ bigint
) RETURNS TABLE (
    poll_after bigint, lanes text, seq bigint, id bytea, lane integer, tenant text, due bigint,
    created bigint, args bytea, extras text, delivery text, cost integer, schedule text,
    generation integer, lease integer, attempt integer, crashes integer, losses integer,
    suspect boolean, handout bigint
)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint;
    room_ integer := limit_;
    bytes_ bigint := max_bytes_;
    queue_ text;
    quota_ integer;
    pass_ integer;
    place_ integer;
    taken_ job[] := '{}';
    some_ job[];
    durable_ boolean;
    capped_ boolean := false;
    repeated_ boolean;
BEGIN
    PERFORM lock_queues(queues_);
    now_ := now_ms();
    repeated_ := EXISTS (SELECT FROM request WHERE request.nonce = nonce_);
    IF repeated_ THEN
        -- A lost reply: what still runs under this very claim, and nothing new.
        SELECT coalesce(array_agg(job), '{}') INTO taken_
        FROM job WHERE job.state = 'running' AND job.nonce = nonce_;
    ELSE
        FOR pass_ IN 1..2 LOOP
            EXIT WHEN pass_ = 2 AND NOT capped_;
            FOR place_ IN 1..cardinality(queues_) LOOP
                EXIT WHEN room_ <= 0 OR (bytes_ <= 0 AND cardinality(taken_) > 0);
                queue_ := queues_[place_];
                quota_ := CASE WHEN pass_ = 1 THEN least(quotas_[place_], room_) ELSE room_ END;
                IF quota_ <= 0 THEN
                    capped_ := true;
                    CONTINUE;
                END IF;
                some_ := take_from_queue(queue_, types_, requirements_, now_, quota_, bytes_,
                                         nonce_, worker_, lease_ms_);
                IF cardinality(some_) > 0 THEN
                    taken_ := taken_ || some_;
                    room_ := room_ - cardinality(some_);
                    bytes_ := bytes_ - (SELECT sum(t.size) FROM unnest(some_) AS t);
                END IF;
                -- Only a queue that its quota stopped can have more for the second pass.
                capped_ := capped_ OR (pass_ = 1 AND cardinality(some_) = quota_);
            END LOOP;
        END LOOP;
        IF cardinality(taken_) > 0 THEN
            INSERT INTO request (nonce, at) VALUES (nonce_, now_) ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    durable_ := EXISTS (SELECT FROM unnest(taken_) AS t WHERE t.delivery = 'at_most_once');
    IF NOT durable_ THEN
        -- A claim that the server forgets is claimed again, which is right: its nonce is unknown.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    poll_after := CASE WHEN repeated_ THEN 0
        ELSE poll_after(queues_, types_, requirements_, now_) END;
    lanes := (SELECT json_object_agg(l.id, json_build_array(l.queue, l.level, l.type))::text
              FROM lane AS l
              WHERE l.id IN (SELECT t.lane FROM unnest(taken_) AS t));
    RETURN NEXT;
    poll_after := NULL;
    lanes := NULL;
    RETURN QUERY
        SELECT NULL::bigint, NULL::text, t.seq, uuid_send(t.id), t.lane, t.tenant, t.due, t.created, t.args,
               t.extras, t.delivery, t.cost, t.schedule, t.generation, t.lease, t.attempt,
               t.crashes, t.losses, t.suspect, t.handout
        FROM unnest(taken_) AS t
        JOIN lane ON lane.id = t.lane
        ORDER BY array_position(queues_, lane.queue), t.handout;
END
$$;

-- asked_lanes: the lanes of a queue that a request may take from, with their bands.
CREATE OR REPLACE FUNCTION asked_lanes(queue_ text, types_ text[], requirements_ text[])
RETURNS TABLE (band integer, level smallint, asked integer[], all_lanes integer[])
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT lane.band,
           lane.level,
           array_agg(lane.id) FILTER (
               WHERE lane.type = ANY (types_)
                 AND lane.requirement = ANY (requirements_)
                 AND type_setting.hold IS NULL
           ),
           array_agg(lane.id)
    FROM lane
    LEFT JOIN type_setting ON type_setting.name = lane.type
    WHERE lane.queue = queue_
      AND NOT EXISTS (SELECT FROM queue WHERE queue.name = queue_ AND queue.hold IS NOT NULL)
    GROUP BY lane.band, lane.level
    HAVING bool_or(lane.type = ANY (types_) AND lane.requirement = ANY (requirements_)
                   AND type_setting.hold IS NULL)
    ORDER BY lane.level
$$;

-- take_from_queue: hand out up to `room_` jobs of one queue, highest level first.
CREATE OR REPLACE FUNCTION take_from_queue(
    queue_ text, types_ text[], requirements_ text[], now_ bigint, room_ integer, bytes_ bigint,
    nonce_ text, worker_ text, lease_ms_ bigint
) RETURNS job[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    bands_ integer[] := '{}';
    asked_ text[] := '{}';
    every_ integer[] := '{}';
    band_ record;
    handouts_ bigint;
    before_ bigint;
    starving_ boolean;
    lone_ boolean;
    batch_ integer;
    taken_ job[] := '{}';
    some_ job[];
    count_ integer;
    place_ integer;
BEGIN
    FOR band_ IN SELECT * FROM asked_lanes(queue_, types_, requirements_) LOOP
        DECLARE
            clock_ bigint := (SELECT band.clock FROM band WHERE band.id = band_.band);
        BEGIN
            PERFORM fold(band_.band, band_.all_lanes, clock_, now_);
            PERFORM wake(band_.band, band_.all_lanes, clock_, now_);
        END;
        bands_ := bands_ || band_.band;
        asked_ := asked_ || band_.asked::text;
        every_ := every_ || band_.asked;
    END LOOP;
    IF cardinality(bands_) = 0 THEN
        RETURN taken_;
    END IF;
    SELECT queue.handouts, now_ - queue.max_wait INTO handouts_, before_
    FROM queue WHERE queue.name = queue_;
    -- Heads only get later while jobs are taken: who does not starve now does not in this claim.
    starving_ := EXISTS (
        SELECT FROM unnest(every_) AS l(lane)
        CROSS JOIN LATERAL (
            SELECT FROM turn
            WHERE turn.lane = l.lane AND turn.awake = 1 AND turn.due < before_
            ORDER BY turn.due LIMIT 1
        ) AS t);
    -- With a single turn there is nobody to go before.
    lone_ := starving_ AND 1 = (
        SELECT count(*) FROM (
            SELECT FROM unnest(every_) AS l(lane)
            CROSS JOIN LATERAL (
                SELECT FROM turn WHERE turn.lane = l.lane AND turn.awake = 1 LIMIT 2
            ) AS t LIMIT 2) AS two);
    -- One job is handed out whatever its size; the caller asks only while there is room.
    WHILE room_ > 0 AND (bytes_ > 0 OR cardinality(taken_) = 0) LOOP
        count_ := 0;
        IF starving_ AND NOT lone_ AND (handouts_ + 1) % 10 = 0 THEN
            SELECT array_agg(t) INTO some_
            FROM take_longest(every_, now_, before_, handouts_ + 1, nonce_, worker_, lease_ms_) AS t;
            count_ := coalesce(cardinality(some_), 0);
            -- Nobody starves any more; this hand-out is an ordinary one.
            starving_ := count_ > 0;
        END IF;
        IF count_ = 0 THEN
            batch_ := CASE WHEN starving_ AND NOT lone_
                THEN least(room_, 9 - (handouts_ % 10)::integer) ELSE room_ END;
            FOR place_ IN 1..cardinality(bands_) LOOP
                LOOP
                    SELECT array_agg(t) INTO some_
                    FROM take_in_line(bands_[place_], asked_[place_]::integer[], now_, batch_,
                                      bytes_, handouts_, nonce_, worker_, lease_ms_,
                                      CASE WHEN lone_ THEN 1 ELSE 0 END) AS t;
                    count_ := coalesce(cardinality(some_), 0);
                    -- Empty-handed although some stand in line: they do not any more. Look again.
                    EXIT WHEN count_ > 0 OR NOT EXISTS (
                        SELECT FROM turn
                        WHERE turn.lane = ANY (asked_[place_]::integer[]) AND turn.awake = 1);
                END LOOP;
                EXIT WHEN count_ > 0;
            END LOOP;
        END IF;
        EXIT WHEN count_ = 0;
        taken_ := taken_ || some_;
        handouts_ := handouts_ + count_;
        room_ := room_ - count_;
        bytes_ := bytes_ - (SELECT sum(t.size) FROM unnest(some_) AS t);
    END LOOP;
    IF cardinality(taken_) > 0 THEN
        UPDATE queue SET handouts = handouts_ WHERE queue.name = queue_;
    END IF;
    RETURN taken_;
END
$$;

-- poll_after: milliseconds until something asked for falls due; 0: now, NULL: nothing waits.
CREATE OR REPLACE FUNCTION poll_after(
    queues_ text[], types_ text[], requirements_ text[], now_ bigint
) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $$
    SELECT min(greatest(0, soonest.due - now_)) FILTER (WHERE soonest.due IS NOT NULL)
    FROM unnest(queues_) AS q(name)
    CROSS JOIN LATERAL asked_lanes(q.name, types_, requirements_) AS a
    CROSS JOIN LATERAL unnest(a.asked) AS l(lane)
    CROSS JOIN LATERAL (
        (SELECT turn.due FROM turn WHERE turn.lane = l.lane AND turn.awake = 1
         ORDER BY turn.due LIMIT 1)
        UNION ALL
        (SELECT turn.due FROM turn WHERE turn.lane = l.lane AND turn.awake = 0
         ORDER BY turn.due LIMIT 1)
        UNION ALL
        -- Arrived, and not folded: its queue was not looked at, or there are too many.
        (SELECT CASE WHEN count(*) > 1000 THEN now_ ELSE min(a.due) END
         FROM (SELECT arrival.due
               FROM arrival
               LEFT JOIN tenant ON tenant.name = arrival.tenant
               WHERE arrival.lane = l.lane AND tenant.hold IS NULL
               LIMIT 1001) AS a)
    ) AS soonest
$$;
