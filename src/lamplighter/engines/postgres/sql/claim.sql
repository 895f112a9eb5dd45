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
) RETURNS TABLE (
    poll_after bigint, lanes text, id bytea, lane integer, tenant text, due bigint,
    created bigint, args bytea, extras text, delivery text, cost integer, schedule text,
    generation integer, lease integer, attempt integer, crashes integer, losses integer,
    suspect boolean, handout bigint
)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ bigint;
    room_ integer := limit_;
    bytes_ bigint := max_bytes_;
    quota_ integer;
    polls_ bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(queues_)]);
    seen_ boolean[] := array_fill(false, ARRAY[cardinality(queues_)]);
    looked_ text[] := '{}';
    some_ record;
    jobs_ tid[] := '{}';
    numbers_ bigint[] := '{}';
    lanes_ integer[] := '{}';
    more_ boolean := false;
    capped_ boolean := false;
BEGIN
    PERFORM lock_queues(queues_);
    now_ := now_ms();
    IF EXISTS (SELECT FROM request WHERE request.nonce = nonce_) THEN
        -- A lost reply: what still runs under this very claim, and nothing new.
        RETURN QUERY SELECT * FROM claimed_by(nonce_);
        RETURN;
    END IF;
    FOR pass_ IN 1..2 LOOP
        EXIT WHEN pass_ = 2 AND NOT capped_;
        FOR place_ IN 1..cardinality(queues_) LOOP
            EXIT WHEN room_ <= 0 OR (bytes_ <= 0 AND cardinality(jobs_) > 0);
            quota_ := CASE WHEN pass_ = 1 THEN least(quotas_[place_], room_) ELSE room_ END;
            IF quota_ <= 0 THEN
                capped_ := true;
                CONTINUE;
            END IF;
            some_ := take_from_queue(queues_[place_], types_, requirements_, now_, quota_, bytes_,
                                     queues_[place_] <> ALL (looked_));
            looked_ := looked_ || queues_[place_];
            polls_[place_] := some_.poll_;
            more_ := more_ OR some_.more_ IS TRUE;
            seen_[place_] := true;
            IF some_.jobs_ IS NOT NULL THEN
                jobs_ := jobs_ || some_.jobs_;
                numbers_ := numbers_ || some_.numbers_;
                lanes_ := lanes_ || some_.from_;
                bytes_ := bytes_ - some_.size_;
                room_ := room_ - cardinality(some_.jobs_);
            END IF;
            -- Only a queue that its quota stopped can have more for the second pass.
            capped_ := capped_ OR (pass_ = 1 AND cardinality(some_.jobs_) = quota_);
        END LOOP;
    END LOOP;
    FOR place_ IN 1..cardinality(queues_) LOOP
        IF NOT seen_[place_] THEN
            polls_[place_] := peek(queues_[place_], types_, requirements_, now_);
        END IF;
        poll_after := least(poll_after, polls_[place_]);
    END LOOP;
    IF more_ THEN
        poll_after := 0;
    END IF;
    -- A claim that the server forgets is claimed again, which is right: its nonce is unknown.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF cardinality(jobs_) = 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO request (nonce, at) VALUES (nonce_, now_) ON CONFLICT DO NOTHING;
    lanes := names_of(lanes_);
    RETURN NEXT;
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
        FROM unnest(jobs_, numbers_) AS t(place, number)
        WHERE job.ctid = t.place
        RETURNING NULL::bigint, NULL::text, uuid_send(job.id), job.lane, job.tenant, job.due,
                  job.created, job.args, job.extras, job.delivery, job.cost, job.schedule,
                  job.generation, job.lease, job.attempt, job.crashes, job.losses, job.suspect,
                  job.handout;
END
$$;

-- claimed_by: what runs under a claim, in the form of its answer. Index: job_running, all of it.
CREATE OR REPLACE FUNCTION claimed_by(nonce_ text)
RETURNS TABLE (
    poll_after bigint, lanes text, id bytea, lane integer, tenant text, due bigint,
    created bigint, args bytea, extras text, delivery text, cost integer, schedule text,
    generation integer, lease integer, attempt integer, crashes integer, losses integer,
    suspect boolean, handout bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    poll_after := 0;
    lanes := names_of(ARRAY(
        SELECT job.lane FROM job WHERE job.state = 'running' AND job.nonce = nonce_));
    RETURN NEXT;
    RETURN QUERY
        SELECT NULL::bigint, NULL::text, uuid_send(job.id), job.lane, job.tenant, job.due,
               job.created, job.args, job.extras, job.delivery, job.cost, job.schedule,
               job.generation, job.lease, job.attempt, job.crashes, job.losses, job.suspect,
               job.handout
        FROM job
        WHERE job.state = 'running' AND job.nonce = nonce_;
END
$$;

-- names_of: what lanes are called, as JSON: their number → queue, level, type.
CREATE OR REPLACE FUNCTION names_of(lanes_ integer[]) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT json_object_agg(lane.id, json_build_array(lane.queue, lane.level, lane.type))::text
        FROM lane
        WHERE lane.id = ANY (lanes_));
END
$$;

-- bands_of: the bands of a queue that a request may take from, highest level first, each with all
-- its lanes: whether they are asked for, and their edges. Without one, there was never a turn.
-- `first` and `soonest` are the earliest edges of the band, `bands` is how many there are.
CREATE OR REPLACE FUNCTION bands_of(queue_ text, types_ text[], requirements_ text[])
RETURNS TABLE (
    band integer, lanes integer[], asked boolean[], edges tid[], times bigint[], dues bigint[],
    asleeps bigint[], first bigint, soonest bigint, bands bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT lane.band, array_agg(lane.id), array_agg(may.ask), array_agg(e.place),
               array_agg(coalesce(e.time, 0)),
               array_agg(coalesce(e.due, 9223372036854775807)),
               array_agg(coalesce(e.asleep, 9223372036854775807)),
               min(coalesce(e.due, 9223372036854775807)),
               min(coalesce(e.asleep, 9223372036854775807)),
               count(*) OVER ()
        FROM lane
        CROSS JOIN LATERAL (
            SELECT lane.type = ANY (types_)
                   AND lane.requirement = ANY (requirements_)
                   AND (SELECT type_setting.hold FROM type_setting
                        WHERE type_setting.name = lane.type) IS NULL AS ask
        ) AS may
        LEFT JOIN LATERAL (
            SELECT edge.ctid AS place, edge.time, edge.due, edge.asleep
            FROM edge
            WHERE edge.lane = lane.id
            ORDER BY edge.version DESC
            LIMIT 1
        ) AS e ON true
        WHERE lane.queue = queue_
        GROUP BY lane.band, lane.level
        HAVING bool_or(may.ask)
        ORDER BY lane.level;
END
$$;

-- take_from_queue: choose up to `room_` jobs of one queue, highest level first.
-- in   first_look_             whether arrivals are folded and sleepers woken. In the second look of a
--                              claim they are not: jobs taken in the first are still written as
--                              waiting, and who arrives before them would take their turn back to them
-- out  jobs_, numbers_, from_  the jobs, their hand-out numbers and their lanes; NULL for none
--      size_                   bytes of their arguments
--      poll_                   milliseconds until more falls due; 0: now, NULL: nothing waits
--      more_                   whether arrivals were left
CREATE OR REPLACE FUNCTION take_from_queue(
    queue_ text, types_ text[], requirements_ text[], now_ bigint, room_ integer, bytes_ bigint,
    first_look_ boolean,
    OUT jobs_ tid[], OUT numbers_ bigint[], OUT from_ integer[], OUT size_ bigint,
    OUT poll_ bigint, OUT more_ boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    hold_ text;
    handed_ tid;
    handouts_ bigint;
    before_ bigint;
    band_ record;
    pulse_ record;
    folded_ record;
    free_ boolean;
    some_ record;
    -- per lane of all bands
    lanes_ integer[] := '{}';
    asked_ boolean[] := '{}';
    edges_ tid[] := '{}';
    times_ bigint[] := '{}';
    dues_ bigint[] := '{}';
    asleeps_ bigint[] := '{}';
    band_of_ integer[] := '{}';
    touched_ integer[] := '{}';
    -- per band
    count_ integer := 0;
    bands_ integer[];
    clocks_ bigint[];
    old_clocks_ bigint[];
    pulses_ tid[];
    seens_ pg_snapshot[];
    looked_ pg_snapshot;
    -- per lane that is asked for and has somebody in line, and where those of a band begin and end
    line_ integer[] := '{}';
    line_times_ bigint[] := '{}';
    line_dues_ bigint[] := '{}';
    line_bands_ integer[] := '{}';
    starts_ integer[];
    ends_ integer[];
    starving_ boolean := false;
    lone_ boolean := false;
    batch_ integer;
    taken_ integer;
    woken_ integer[];
    several_ boolean[];
BEGIN
    SELECT queue.hold, now_ - queue.max_wait, h.place, coalesce(h.handouts, 0)
    INTO hold_, before_, handed_, handouts_
    FROM queue
    LEFT JOIN LATERAL (
        SELECT handed.ctid AS place, handed.handouts
        FROM handed
        WHERE handed.queue = queue.name
        ORDER BY handed.handouts DESC
        LIMIT 1
    ) AS h ON true
    WHERE queue.name = queue_;
    IF NOT FOUND OR hold_ IS NOT NULL THEN
        RETURN;
    END IF;
    size_ := 0;
    more_ := false;
    -- Before the lanes are read: one that is made afterwards is not looked at in this claim.
    looked_ := pg_current_snapshot();
    FOR band_ IN SELECT * FROM bands_of(queue_, types_, requirements_) LOOP
        count_ := count_ + 1;
        bands_[count_] := band_.band;
        SELECT pulse.ctid AS place, pulse.clock, pulse.seen INTO pulse_
        FROM pulse
        WHERE pulse.band = band_.band
        ORDER BY pulse.version DESC
        LIMIT 1;
        pulses_[count_] := pulse_.place;
        clocks_[count_] := coalesce(pulse_.clock, 0);
        old_clocks_[count_] := clocks_[count_];
        IF first_look_ THEN
            -- Nobody in line so far, and whose turn it is does not depend on who comes after.
            free_ := cardinality(line_) = 0 AND jobs_ IS NULL AND room_ > 0
                AND band_.first = 9223372036854775807 AND band_.soonest > now_
                AND (band_.bands = 1 OR (handouts_ + 1) % 10 <> 0);
            folded_ := fold(band_.band, band_.lanes, band_.dues, CASE WHEN free_ THEN band_.asked END,
                            clocks_[count_], pulse_.seen, now_, before_);
            more_ := more_ OR folded_.more_;
            seens_[count_] := CASE WHEN folded_.all_ THEN looked_ END;
            IF folded_.job_ IS NOT NULL THEN
                jobs_ := ARRAY[folded_.job_];
                handouts_ := handouts_ + 1;
                numbers_ := ARRAY[handouts_];
                from_ := ARRAY[folded_.from_];
                size_ := folded_.size_;
                clocks_[count_] := folded_.after_;
                room_ := room_ - 1;
            ELSIF folded_.touched_ IS NOT NULL THEN
                touched_ := touched_ || folded_.touched_;
                band_.dues := folded_.new_dues_;
            END IF;
            IF band_.soonest <= now_ THEN
                woken_ := wake(band_.band, band_.lanes, band_.asleeps, clocks_[count_], now_);
                touched_ := touched_ || woken_;
                band_.dues := ARRAY(
                    SELECT CASE WHEN l.lane = ANY (woken_) THEN least(l.due, l.asleep) ELSE l.due END
                    FROM unnest(band_.lanes, band_.dues, band_.asleeps)
                         WITH ORDINALITY AS l(lane, due, asleep, n)
                    ORDER BY l.n);
            END IF;
        END IF;
        several_[count_] := cardinality(band_.lanes) > 1;
        lanes_ := lanes_ || band_.lanes;
        band_of_ := band_of_ || array_fill(count_, ARRAY[cardinality(band_.lanes)]);
        asked_ := asked_ || band_.asked;
        edges_ := edges_ || band_.edges;
        times_ := times_ || band_.times;
        dues_ := dues_ || band_.dues;
        asleeps_ := asleeps_ || band_.asleeps;
        starts_[count_] := cardinality(line_) + 1;
        FOR place_ IN 1..cardinality(band_.lanes) LOOP
            IF band_.asked[place_] AND band_.dues[place_] < 9223372036854775807 THEN
                line_ := line_ || band_.lanes[place_];
                line_times_ := line_times_ || band_.times[place_];
                line_dues_ := line_dues_ || band_.dues[place_];
                line_bands_ := line_bands_ || band_.band;
                -- Heads only get later while jobs are taken: who does not starve now, never does.
                starving_ := starving_ OR band_.dues[place_] < before_;
            END IF;
        END LOOP;
        ends_[count_] := cardinality(line_);
    END LOOP;
    IF count_ = 0 THEN
        RETURN;
    END IF;
    IF starving_ THEN
        -- Edges are a bound, and may be too early.
        starving_ := before_ > (SELECT min(first_due(l.lane, 1, l.due))
                                FROM unnest(line_, line_dues_) AS l(lane, due));
    END IF;
    IF starving_ THEN
        -- With a single turn there is nobody to go before.
        lone_ := 1 = (
            SELECT count(*) FROM (
                SELECT FROM unnest(line_, line_times_) AS l(lane, time)
                CROSS JOIN LATERAL (
                    SELECT FROM turn
                    WHERE turn.lane = l.lane AND turn.awake = 1 AND turn.time >= 0 AND turn.time >= l.time
                    LIMIT 2
                ) AS t LIMIT 2) AS two);
    END IF;
    -- One job is handed out whatever its size; the caller asks only while there is room.
    WHILE room_ > 0 AND (bytes_ > size_ OR jobs_ IS NULL) LOOP
        taken_ := 0;
        IF starving_ AND NOT lone_ AND (handouts_ + 1) % 10 = 0 THEN
            some_ := take_longest(
                line_, line_bands_,
                ARRAY(SELECT clocks_[array_position(bands_, b.band)]
                      FROM unnest(line_bands_) WITH ORDINALITY AS b(band, n) ORDER BY b.n),
                line_dues_, now_, before_);
            -- Nobody starves any more? Then this hand-out is an ordinary one.
            starving_ := some_.job_ IS NOT NULL;
            IF starving_ THEN
                taken_ := 1;
                jobs_ := jobs_ || some_.job_;
                numbers_ := numbers_ || handouts_ + 1;
                from_ := from_ || some_.touched_;
                touched_ := touched_ || some_.touched_;
            END IF;
        END IF;
        IF taken_ = 0 THEN
            batch_ := CASE WHEN starving_ AND NOT lone_
                THEN least(room_, 9 - (handouts_ % 10)::integer) ELSE room_ END;
            FOR place_ IN 1..count_ LOOP
                CONTINUE WHEN ends_[place_] < starts_[place_];
                LOOP
                    IF starts_[place_] = ends_[place_] THEN
                        some_ := take_alone(
                            bands_[place_], clocks_[place_], line_[starts_[place_]],
                            line_times_[starts_[place_]], now_, batch_, bytes_ - size_,
                            handouts_, lone_);
                        IF cardinality(some_.jobs_) < batch_ THEN
                            -- All that was due; the line is empty.
                            ends_[place_] := starts_[place_] - 1;
                        END IF;
                        EXIT WHEN some_.jobs_ IS NOT NULL;
                    END IF;
                    IF several_[place_] THEN
                        PERFORM catch_up(
                            bands_[place_], line_[starts_[place_]:ends_[place_]],
                            line_times_[starts_[place_]:ends_[place_]], batch_);
                    END IF;
                    some_ := take_in_line(
                        bands_[place_], clocks_[place_], line_[starts_[place_]:ends_[place_]],
                        line_times_[starts_[place_]:ends_[place_]], now_, batch_,
                        bytes_ - size_, handouts_, lone_);
                    EXIT WHEN some_.jobs_ IS NOT NULL;
                    -- Empty-handed although some stand in line: not any more. Look again.
                    EXIT WHEN NOT leave_line(line_[starts_[place_]:ends_[place_]],
                                             line_times_[starts_[place_]:ends_[place_]],
                                             batch_, now_);
                    touched_ := touched_ || line_[starts_[place_]:ends_[place_]];
                END LOOP;
                IF some_.jobs_ IS NOT NULL THEN
                    taken_ := cardinality(some_.jobs_);
                    jobs_ := jobs_ || some_.jobs_;
                    numbers_ := numbers_ || some_.numbers_;
                    from_ := from_ || some_.touched_;
                    touched_ := touched_ || some_.touched_;
                    clocks_[place_] := some_.after_;
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        EXIT WHEN taken_ = 0;
        size_ := size_ + some_.size_;
        handouts_ := handouts_ + taken_;
        room_ := room_ - taken_;
    END LOOP;
    IF jobs_ IS NOT NULL THEN
        UPDATE handed SET handouts = handouts_ WHERE handed.ctid = handed_;
        IF NOT FOUND THEN
            INSERT INTO handed (queue, handouts) VALUES (queue_, handouts_);
        END IF;
    END IF;
    FOR place_ IN 1..count_ LOOP
        IF seens_[place_] IS NOT NULL OR clocks_[place_] > old_clocks_[place_] THEN
            UPDATE pulse
            SET version = nextval('turn_version'),
                clock = clocks_[place_],
                seen = coalesce(seens_[place_], pulse.seen)
            WHERE pulse.ctid = pulses_[place_];
            IF NOT FOUND THEN
                INSERT INTO pulse (band, version, clock, seen)
                VALUES (bands_[place_], nextval('turn_version'), clocks_[place_], seens_[place_]);
            END IF;
        END IF;
    END LOOP;
    IF cardinality(touched_) > 0 THEN
        poll_ := keep_edges(lanes_, asked_, edges_, times_, dues_, asleeps_, band_of_, clocks_,
                            touched_, now_);
    ELSE
        FOR place_ IN 1..cardinality(lanes_) LOOP
            IF asked_[place_] THEN
                poll_ := least(poll_, dues_[place_], asleeps_[place_]);
            END IF;
        END LOOP;
        poll_ := nullif(poll_, 9223372036854775807);
    END IF;
    poll_ := CASE WHEN poll_ <= now_ THEN 0 ELSE poll_ - now_ END;
END
$$;

-- peek: milliseconds until something asked for falls due in a queue that was not taken from; 0:
-- now, NULL: nothing waits. Index: arrival_new.
CREATE OR REPLACE FUNCTION peek(
    queue_ text, types_ text[], requirements_ text[], now_ bigint
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    soonest_ bigint;
BEGIN
    IF EXISTS (SELECT FROM queue WHERE queue.name = queue_ AND queue.hold IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    SELECT min(least(l.due, l.asleep, arrived.due)) INTO soonest_
    FROM bands_of(queue_, types_, requirements_) AS b
    CROSS JOIN LATERAL unnest(b.lanes, b.asked, b.dues, b.asleeps) AS l(lane, asked, due, asleep)
    LEFT JOIN LATERAL (
        SELECT min(a.due) AS due
        FROM (
            SELECT arrival.due
            FROM arrival
            WHERE arrival.lane = l.lane
              AND (SELECT tenant.hold FROM tenant WHERE tenant.name = arrival.tenant) IS NULL
            LIMIT 1000
        ) AS a
    ) AS arrived ON true
    WHERE l.asked;
    RETURN CASE WHEN soonest_ <= now_ THEN 0
                WHEN soonest_ < 9223372036854775807 THEN soonest_ - now_ END;
END
$$;
