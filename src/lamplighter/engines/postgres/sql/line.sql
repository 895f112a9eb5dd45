-- The line of a band: whose job is next, in the order of model/stride.py. Called by claim alone.
--
-- Inside a (queue, level) the order can be written as a set. A tenant's turns there share one
-- virtual time, and no awake turn stands beyond max(that time, clock). So of a tenant that is first
-- at place p the next hand-outs stand at
--     p,  max(p, clock) + step 1,  max(p, clock) + step 1 + step 2, …
-- and from the second on its lanes follow each other by (due, seq). All tenants' places, sorted by
-- (place, tenant), are the line.

-- draw: choose up to `room_` jobs of the bands of a queue, highest level first; while somebody starves,
-- each tenth is the one that has been due longest, which leaves the clock alone.
-- in   handouts_  how many there were of the queue before
--      picks_     the jobs, in the order of their hand-outs, to which more are added;   size_  their bytes
--      starving_  whether somebody may be starving
CREATE OR REPLACE FUNCTION draw(
    INOUT bands_ band_line[], now_ bigint, before_ bigint, room_ integer, bytes_ bigint,
    handouts_ bigint, INOUT picks_ pick[], INOUT size_ bigint, starving_ boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    lone_ boolean := false;
    number_ bigint;
    some_ record;
BEGIN
    IF starving_ THEN
        -- Edges are a bound, and may be too early. Heads only get later while jobs are taken: who does
        -- not starve now, never does.
        starving_ := (choose_longest(bands_, now_, before_, 0)).picks_ IS NOT NULL;
        -- With a single turn there is nobody to go before.
        lone_ := 1 = (SELECT count(*) FROM (
            SELECT FROM unnest(bands_) AS b
            CROSS JOIN LATERAL (
                @line_of(b.lanes, 2)@
            ) AS t LIMIT 2) AS two);
    END IF;
    -- One job is handed out whatever its size; the caller asks only while there is room.
    WHILE cardinality(picks_) < room_ AND (size_ < bytes_ OR cardinality(picks_) = 0) LOOP
        number_ := handouts_ + cardinality(picks_) + 1;
        some_ := NULL;
        IF starving_ AND NOT lone_ AND number_ % 10 = 0 THEN
            some_ := choose_longest(bands_, now_, before_, number_);
            -- Nobody starves any more? Then this hand-out is an ordinary one.
            starving_ := some_.picks_ IS NOT NULL;
        END IF;
        IF some_ IS NULL OR NOT starving_ THEN
            some_ := choose_in_bands(
                bands_, now_,
                least(room_ - cardinality(picks_),
                      CASE WHEN starving_ AND NOT lone_ THEN 10 - number_ % 10 END)::integer,
                bytes_ - size_, number_);
            bands_ := some_.bands_;
        END IF;
        EXIT WHEN some_.picks_ IS NULL;
        picks_ := picks_ || some_.picks_;
        size_ := size_ + some_.size_;
        bands_[some_.place_] := move_on(bands_[some_.place_], some_.news_, starving_, now_);
    END LOOP;
END
$$;

-- choose_in_bands: the next in line of the first band that has some, and which band that is.
-- out  news_  those of them by which the band moves on
CREATE OR REPLACE FUNCTION choose_in_bands(
    INOUT bands_ band_line[], now_ bigint, room_ integer, bytes_ bigint, number_ bigint,
    OUT place_ integer, OUT picks_ pick[], OUT size_ bigint, OUT news_ pick[]
)
LANGUAGE plpgsql AS $$
DECLARE
    band_ band_line;
    some_ record;
    standing_ bigint;
BEGIN
    FOR n_ IN 1..cardinality(bands_) LOOP
        band_ := bands_[n_];
        WHILE NOT band_.done LOOP
            some_ := choose_alone(band_, now_, room_, bytes_, number_);
            standing_ := some_.standing_;
            IF standing_ > 1 THEN
                IF cardinality(band_.lanes) > 1 THEN
                    PERFORM catch_up(band_, room_);
                END IF;
                some_ := choose_in_line(band_, now_, room_, bytes_, number_);
                news_ := some_.picks_;
            ELSE
                -- A line of one that is not enough is all that was due.
                band_.done := standing_ = 0 OR cardinality(some_.picks_) < room_;
                -- The last two say it all: where the turn stands then, and of two one moves the clock.
                news_ := some_.picks_[cardinality(some_.picks_) - 1:];
            END IF;
            picks_ := some_.picks_;
            size_ := some_.size_;
            EXIT WHEN picks_ IS NOT NULL OR band_.done;
            -- Empty-handed although some stand in line: not any more. Look again.
            band_ := leave_line(band_, room_, now_);
        END LOOP;
        bands_[n_] := band_;
        place_ := n_;
        EXIT WHEN picks_ IS NOT NULL;
    END LOOP;
END
$$;

-- catch_up: move turns to their tenants' times, as far as they are among the first `room_` of their
-- lane; another lane may have moved a tenant on since its turn here woke. Of each lane so many: a
-- tenant may stand in several, and what counts in the end are the first `room_` tenants.
CREATE OR REPLACE FUNCTION catch_up(band_ band_line, room_ integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        WITH behind AS MATERIALIZED (
            SELECT t.place, t.time, tenant.time AS share
            FROM (
                @line_of(band_.lanes, room_)@
            ) AS t
            @tenant_of(band_.band, t.tenant)@ AS tenant
        )
        UPDATE turn
        SET version = nextval('turn_version'), time = behind.share
        FROM behind
        WHERE turn.ctid = behind.place AND behind.share > behind.time;
        EXIT WHEN NOT FOUND;
    END LOOP;
END
$$;

-- choose_in_line: up to `room_` jobs of one band, asked lanes only, that are next in line.
-- in   number_  the number of the next hand-out
-- out  picks_   the jobs, in this order; NULL: those in line have none;   size_  bytes of their arguments
CREATE OR REPLACE FUNCTION choose_in_line(
    band_ band_line, now_ bigint, room_ integer, bytes_ bigint, number_ bigint,
    OUT picks_ pick[], OUT size_ bigint
)
LANGUAGE plpgsql AS $$
BEGIN
    WITH first AS (
        -- The tenants that stand first, each with its first turn.
        SELECT DISTINCT ON (t.tenant) t.place, t.lane, t.tenant, t.time, t.due, t.seq
        FROM (
            @line_of(band_.lanes, room_)@
        ) AS t
        ORDER BY t.tenant, t.time, t.due, t.seq
    ), standing AS (
        SELECT f.place, f.lane, f.tenant, f.time, f.due, f.seq, tenant.weight,
               -- Who stands last bounds what the others can have before that.
               CASE WHEN count(*) OVER () >= room_ THEN max(f.time) OVER () END AS horizon
        FROM (SELECT * FROM first ORDER BY first.time, first.tenant LIMIT room_) AS f
        @tenant_of(band_.band, f.tenant)@ AS tenant
    ), bounded AS (
        SELECT s.*,
               CASE WHEN s.horizon IS NULL THEN room_ ELSE least(room_,
                   1 + greatest(0, s.horizon - greatest(s.time, band_.clock))
                       / greatest(1, @step(1, s.weight)@)) END AS most
        FROM standing AS s
    ), waiting AS (
        SELECT b.tenant, b.time, t.place AS turn, t.lane, w.place AS job, w.due, w.seq, w.size,
               @step(w.cost, b.weight)@ AS step,
               row_number() OVER (
                   PARTITION BY b.tenant
                   ORDER BY (t.lane = b.lane AND w.due = b.due AND w.seq = b.seq) DESC, w.due, w.seq
               ) AS nth
        FROM bounded AS b
        CROSS JOIN LATERAL (
            SELECT b.place, b.lane, b.tenant, b.due, b.seq
            UNION ALL
            SELECT other.place, other.lane, b.tenant, other.due, other.seq
            FROM unnest(band_.lanes) AS l
            CROSS JOIN LATERAL (
                @turn_of(l.lane, b.tenant)@
            ) AS other
            WHERE b.most > 1 AND l.asked AND l.due < @never@ AND l.lane <> b.lane
              AND other.awake = @in_line@
        ) AS t
        CROSS JOIN LATERAL (
            @jobs_of(t, now_, b.most)@
        ) AS w
    ), placed AS (
        SELECT w.*,
               CASE WHEN w.nth = 1 THEN w.time ELSE
                   greatest(w.time, band_.clock) + (sum(w.step) OVER so_far - w.step)::bigint
               END AS stands,
               greatest(w.time, band_.clock) + (sum(w.step) OVER so_far)::bigint AS paid
        FROM waiting AS w
        WINDOW so_far AS (PARTITION BY w.tenant ORDER BY w.nth ROWS UNBOUNDED PRECEDING)
    ), line AS (
        SELECT placed.*,
               row_number() OVER so_far AS number,
               sum(placed.size) OVER so_far - placed.size AS before
        FROM placed
        WINDOW so_far AS (ORDER BY placed.stands, placed.tenant ROWS UNBOUNDED PRECEDING)
    )
    SELECT array_agg(ROW(line.job, number_ + line.number - 1, line.lane, line.size, line.turn,
                         line.tenant, line.due, line.seq, line.stands, line.paid)::pick
                     ORDER BY line.number),
           sum(line.size)
    INTO picks_, size_
    FROM line
    WHERE line.number <= room_ AND (line.number = 1 OR line.before < bytes_);
END
$$;

-- choose_alone: the same where a single turn stands in line, as in most programs most of the time: then
-- the line is that turn. See docs/adr/0015 for what it is worth.
-- out  standing_  how many turns stand in line, 2 for more;   picks_  NULL if not one
CREATE OR REPLACE FUNCTION choose_alone(
    band_ band_line, now_ bigint, room_ integer, bytes_ bigint, number_ bigint,
    OUT standing_ bigint, OUT picks_ pick[], OUT size_ bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    turn_ record;
BEGIN
    SELECT t.place, t.lane, t.tenant, t.due, t.seq, tenant.weight,
           -- Another lane may have moved its tenant on.
           greatest(t.time, tenant.time) AS time, count(*) OVER () AS standing
    INTO turn_
    FROM (
        @line_of(band_.lanes, 2)@
        LIMIT 2
    ) AS t
    @tenant_of(band_.band, t.tenant)@ AS tenant
    LIMIT 1;
    standing_ := coalesce(turn_.standing, 0);
    IF standing_ <> 1 THEN
        RETURN;
    END IF;
    SELECT array_agg(ROW(w.place, number_ + w.n - 1, turn_.lane, w.size, turn_.place,
                         turn_.tenant, w.due, w.seq,
                         CASE WHEN w.n = 1 THEN turn_.time
                              ELSE greatest(turn_.time, band_.clock) + w.paid - w.step END,
                         greatest(turn_.time, band_.clock) + w.paid)::pick),
           sum(w.size)
    INTO picks_, size_
    FROM (
        SELECT j.place, j.due, j.seq, j.size, s.step,
               row_number() OVER so_far AS n,
               (sum(s.step) OVER so_far)::bigint AS paid,
               sum(j.size) OVER so_far - j.size AS before
        FROM (
            @jobs_of(turn_, now_, room_)@
        ) AS j
        CROSS JOIN LATERAL (SELECT @step(j.cost, turn_.weight)@ AS step) AS s
        WINDOW so_far AS (ORDER BY j.due, j.seq ROWS UNBOUNDED PRECEDING)
    ) AS w
    WHERE w.n = 1 OR w.before < bytes_;
END
$$;

-- leave_line: let those leave the line who stand there in vain: whose head is not due, or is gone.
-- If there is nobody like that, the band is done.
CREATE OR REPLACE FUNCTION leave_line(INOUT band_ band_line, most_ integer, now_ bigint)
LANGUAGE plpgsql AS $$
BEGIN
    WITH idle AS MATERIALIZED (
        SELECT t.place, head.due, head.seq
        FROM (
            @line_of(band_.lanes, most_)@
        ) AS t
        LEFT JOIN LATERAL (
            @head_of(t)@
        ) AS head ON true
        WHERE head.seq IS NULL OR head.due > now_
    ), gone AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = coalesce(idle.due, turn.due),
            seq = coalesce(idle.seq, turn.seq),
            awake = CASE WHEN idle.seq IS NULL THEN @empty@ ELSE @asleep@ END
        FROM idle
        WHERE turn.ctid = idle.place
        RETURNING turn.lane
    )
    SELECT count(*) = 0, band_.touched || array_agg(DISTINCT gone.lane) INTO band_.done, band_.touched
    FROM gone;
END
$$;

-- choose_longest: the job that has been due longest, if since before `before_`, and its band's place.
CREATE OR REPLACE FUNCTION choose_longest(
    bands_ band_line[], now_ bigint, before_ bigint, number_ bigint,
    OUT place_ integer, OUT picks_ pick[], OUT size_ bigint, OUT news_ pick[]
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.ordinality, ARRAY[ROW(
               head.place, number_, t.lane, head.size, t.place, t.tenant, head.due, head.seq, t.clock,
               greatest(tenant.time, t.clock) + @step(head.cost, tenant.weight)@)::pick],
           head.size
    INTO place_, picks_, size_
    FROM (
        SELECT t.*, b.ordinality, b.band, b.clock
        FROM unnest(bands_) WITH ORDINALITY AS b
        CROSS JOIN LATERAL unnest(b.lanes) AS l
        CROSS JOIN LATERAL (
            SELECT turn.ctid AS place, turn.lane, turn.tenant, turn.due, turn.seq
            FROM turn
            WHERE turn.lane = l.lane
              AND turn.awake = @in_line@
              AND turn.due >= 0
              AND turn.due >= l.due
              AND turn.due < before_
            ORDER BY turn.due, turn.seq
            LIMIT 1
        ) AS t
        WHERE l.asked AND l.due < @never@
    ) AS t
    CROSS JOIN LATERAL (
        @head_of(t)@
    ) AS head
    @tenant_of(t.band, t.tenant)@ AS tenant
    WHERE head.due <= now_
    ORDER BY t.due, t.seq
    LIMIT 1;
    news_ := picks_;
END
$$;
