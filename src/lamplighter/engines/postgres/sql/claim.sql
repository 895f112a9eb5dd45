-- claim: hand out due jobs, fairly, in the order of model/stride.py.
-- Lock: the asked queues, ascending, before anything is read. Guard: state = 'waiting' under it.
-- Index: turn_in_line, job_waiting; job by its place, which nobody changes under the lock.
-- Functions without settings of their own are called only by those that have them.
--
-- in   queues_, quotas_       in the order of preference, and how much of each at first
--      types_, requirements_  what the worker can run
--      limit_, max_bytes_     how much there is room for; one job goes whatever its size
-- out  the first row has no job: when to come again, and the names of the lanes, as JSON;
--      then the jobs, those of a queue in the order of their hand-outs
CREATE OR REPLACE FUNCTION claim(
    nonce_ text, worker_ text, queues_ text[], quotas_ integer[], types_ text[],
    requirements_ text[], limit_ integer, lease_ms_ bigint, max_bytes_ bigint
) RETURNS SETOF claimed_job
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    first_ claimed_job;
    now_ bigint;
    room_ integer := limit_;
    bytes_ bigint := max_bytes_;
    quota_ integer;
    polls_ bigint[] := '{}';
    some_ record;
    picks_ pick[] := '{}';
    lanes_ integer[];
    more_ boolean := false;
    capped_ boolean := false;
BEGIN
    PERFORM lock_queues(queues_);
    now_ := now_ms();
    IF EXISTS (SELECT FROM request WHERE request.nonce = nonce_) THEN
        -- A lost reply: what still runs under this very claim, and nothing new.
        -- Index: job_running, all of it.
        first_.poll_after := 0;
        lanes_ := ARRAY(
            SELECT job.lane FROM job WHERE job.state = 'running' AND job.nonce = nonce_);
        first_.lanes := @names_of(lanes_)@;
        RETURN NEXT first_;
        RETURN QUERY
            SELECT @claim.columns@
            FROM job
            WHERE job.state = 'running' AND job.nonce = nonce_;
        RETURN;
    END IF;
    FOR pass_ IN 1..2 LOOP
        EXIT WHEN pass_ = 2 AND NOT capped_;
        FOR place_ IN 1..cardinality(queues_) LOOP
            IF bytes_ <= 0 AND cardinality(picks_) > 0 THEN
                room_ := 0;
            END IF;
            quota_ := CASE WHEN pass_ = 1 THEN least(quotas_[place_], room_) ELSE room_ END;
            EXIT WHEN pass_ = 2 AND quota_ <= 0;
            some_ := take_from_queue(queues_[place_], types_, requirements_, now_, quota_, bytes_,
                                     pass_ = 1);
            polls_[place_] := some_.poll_;
            more_ := more_ OR some_.more_;
            picks_ := picks_ || some_.picks_;
            bytes_ := bytes_ - some_.size_;
            room_ := room_ - cardinality(some_.picks_);
            -- Only a queue that its quota stopped can have more for the second pass.
            capped_ := capped_ OR cardinality(some_.picks_) >= quota_;
        END LOOP;
    END LOOP;
    first_.poll_after := CASE WHEN more_ THEN 0 ELSE (SELECT min(p) FROM unnest(polls_) AS p) END;
    -- A claim that the server forgets is claimed again, which is right: its nonce is unknown.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF cardinality(picks_) = 0 THEN
        RETURN NEXT first_;
        RETURN;
    END IF;
    INSERT INTO request (nonce, at) VALUES (nonce_, now_) ON CONFLICT DO NOTHING;
    lanes_ := ARRAY(SELECT p.lane FROM unnest(picks_) AS p);
    first_.lanes := @names_of(lanes_)@;
    RETURN NEXT first_;
    RETURN QUERY
        UPDATE job
        SET state = 'running',
            lease = job.lease + 1,
            nonce = nonce_,
            worker = worker_,
            handout = p.number,
            claimed = now_,
            expires = now_ + lease_ms_,
            lease_ms = lease_ms_
        FROM unnest(picks_) AS p
        WHERE job.ctid = p.job
        RETURNING @claim.columns@;
END
$$;

-- bands_of: the bands of a queue that a request may take from, highest level first, each with all
-- its lanes: whether they are asked for, and their edges. Without one, there was never a turn.
CREATE OR REPLACE FUNCTION bands_of(queue_ text, types_ text[], requirements_ text[])
RETURNS band_line[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT ROW(of.band, pulse.place, coalesce(pulse.clock, 0), coalesce(pulse.clock, 0),
                   pulse.seen, NULL, of.due, of.asleep, false, '{}', of.lanes)::band_line
        FROM (
            SELECT lane.band, lane.level,
                   coalesce(min(edge.due), @never@) AS due,
                   coalesce(min(edge.asleep), @never@) AS asleep,
                   array_agg(ROW(lane.id, may.ask, edge.place, coalesce(edge.time, 0),
                                 coalesce(edge.due, @never@),
                                 coalesce(edge.asleep, @never@))::lane_edge) AS lanes
            FROM lane
            CROSS JOIN LATERAL (
                SELECT lane.type = ANY (types_)
                       AND lane.requirement = ANY (requirements_)
                       AND (SELECT type_setting.hold FROM type_setting
                            WHERE type_setting.name = lane.type) IS NULL AS ask
            ) AS may
            LEFT JOIN LATERAL (
                @edge_of(lane.id)@
            ) AS edge ON true
            WHERE lane.queue = queue_
            GROUP BY lane.band, lane.level
            HAVING bool_or(may.ask)
        ) AS of
        LEFT JOIN LATERAL (
            @pulse_of(of.band)@
        ) AS pulse ON true
        ORDER BY of.level);
END
$$;

-- take_from_queue: choose up to `room_` jobs of one queue, highest level first.
-- in   first_look_  whether arrivals are folded and sleepers woken. In the second look of a claim they are
--                   not: jobs taken in the first are still written as waiting, and who arrives before them
--                   would take their turn back to them
-- out  picks_       the jobs, in the order of their hand-outs
--      size_        bytes of their arguments
--      poll_        milliseconds until more falls due; 0: now, NULL: nothing waits
--      more_        whether arrivals were left
CREATE OR REPLACE FUNCTION take_from_queue(
    queue_ text, types_ text[], requirements_ text[], now_ bigint, room_ integer, bytes_ bigint,
    first_look_ boolean,
    OUT picks_ pick[], OUT size_ bigint, OUT poll_ bigint, OUT more_ boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    given_ record;
    -- Before the lanes are read: one that is made afterwards is not looked at in this claim.
    looked_ CONSTANT pg_snapshot := pg_current_snapshot();
    bands_ band_line[];
    some_ record;
    first_ bigint;
BEGIN
    picks_ := '{}';
    size_ := 0;
    more_ := false;
    SELECT queue.hold, now_ - queue.max_wait AS before, h.place, coalesce(h.handouts, 0) AS handouts
    INTO given_
    FROM queue
    LEFT JOIN LATERAL (
        SELECT handed.ctid AS place, handed.handouts
        FROM handed
        WHERE handed.queue = queue.name
        ORDER BY handed.handouts DESC
        LIMIT 1
    ) AS h ON true
    WHERE queue.name = queue_;
    IF NOT FOUND OR given_.hold IS NOT NULL THEN
        RETURN;
    END IF;
    bands_ := bands_of(queue_, types_, requirements_);
    IF first_look_ THEN
        some_ := meet(bands_, looked_, now_, given_.before,
                      CASE WHEN room_ > 0 THEN given_.handouts + 1 END);
        bands_ := some_.bands_;
        picks_ := some_.picks_;
        size_ := coalesce(picks_[1].size, 0);
        more_ := some_.more_;
    END IF;
    SELECT min(l.due), min(least(l.due, l.asleep)) INTO first_, poll_
    FROM unnest(bands_) AS b
    CROSS JOIN LATERAL unnest(b.lanes) AS l
    WHERE l.asked;
    IF first_ < @never@ THEN
        some_ := draw(bands_, now_, given_.before, room_, bytes_, given_.handouts, picks_, size_,
                      first_ < given_.before);
        bands_ := some_.bands_;
        picks_ := some_.picks_;
        size_ := some_.size_;
    END IF;
    IF cardinality(picks_) > 0 THEN
        UPDATE handed SET handouts = handed.handouts + cardinality(picks_)
        WHERE handed.ctid = given_.place;
        IF NOT FOUND THEN
            INSERT INTO handed (queue, handouts) VALUES (queue_, cardinality(picks_));
        END IF;
    END IF;
    poll_ := keep(bands_, poll_, now_);
    poll_ := CASE WHEN poll_ <= now_ THEN 0 WHEN poll_ < @never@ THEN poll_ - now_ END;
END
$$;
