-- The line of a band: whose job is next, in the order of model/stride.py. Called by claim alone.
--
-- Inside a (queue, level) the order can be written as a set. A tenant's turns there share one
-- virtual time, and no awake turn stands beyond max(that time, clock). So of a tenant that is first
-- at place p the next hand-outs stand at
--     p,  max(p, clock) + step 1,  max(p, clock) + step 1 + step 2, …
-- and from the second on its lanes follow each other by (due, seq). All tenants' places, sorted by
-- (place, tenant), are the line.

-- catch_up: move turns to their tenants' times, as far as they are among the first `room_` of their
-- lane; another lane may have moved a tenant on since its turn here woke. Of each lane so many: a
-- tenant may stand in several, and what counts in the end are the first `room_` tenants.
CREATE OR REPLACE FUNCTION catch_up(
    band_ integer, lanes_ integer[], times_ bigint[], room_ integer
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        WITH behind AS MATERIALIZED (
            SELECT t.place, share.time
            FROM unnest(lanes_, times_) AS l(lane, time)
            CROSS JOIN LATERAL (
                SELECT turn.ctid AS place, turn.tenant, turn.time
                FROM turn
                WHERE turn.lane = l.lane
                  AND turn.awake = 1
                  AND turn.time >= 0
                  AND turn.time >= l.time
                ORDER BY turn.time, turn.tenant
                LIMIT room_
            ) AS t
            CROSS JOIN LATERAL (
                SELECT share.time FROM share
                WHERE share.band = band_ AND share.tenant = t.tenant
                ORDER BY share.time DESC
                LIMIT 1
            ) AS share
            WHERE share.time > t.time
        )
        UPDATE turn
        SET version = nextval('turn_version'), time = behind.time
        FROM behind
        WHERE turn.ctid = behind.place;
        EXIT WHEN NOT FOUND;
    END LOOP;
END
$$;

-- take_in_line: choose up to `room_` jobs of one band, asked lanes only, that are next in line.
-- in   lanes_, times_      the lanes, and their edges in line
--      first_, quiet_      hand-outs so far; whether every tenth leaves the clock alone
-- out  jobs_, numbers_     the jobs and their hand-out numbers, in this order
--      size_               bytes of their arguments
--      touched_, after_    the lanes they are from, and the clock after them
CREATE OR REPLACE FUNCTION take_in_line(
    band_ integer, clock_ bigint, lanes_ integer[], times_ bigint[], now_ bigint, room_ integer,
    bytes_ bigint, first_ bigint, quiet_ boolean,
    OUT jobs_ tid[], OUT numbers_ bigint[], OUT size_ bigint,
    OUT touched_ integer[], OUT after_ bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    turns_ tid[];
    tenants_ text[];
    dues_ bigint[];
    seqs_ bigint[];
    ends_ bigint[];
BEGIN
    WITH first AS (
        -- The tenants that stand first, each with its first turn.
        SELECT DISTINCT ON (t.tenant) t.place, t.lane, t.tenant, t.time, t.due, t.seq
        FROM unnest(lanes_, times_) AS l(lane, time)
        CROSS JOIN LATERAL (
            SELECT turn.ctid AS place, turn.lane, turn.tenant, turn.time, turn.due, turn.seq
            FROM turn
            WHERE turn.lane = l.lane AND turn.awake = 1 AND turn.time >= 0 AND turn.time >= l.time
            ORDER BY turn.time, turn.tenant
            LIMIT room_
        ) AS t
        ORDER BY t.tenant, t.time, t.due, t.seq
    ), standing AS (
        SELECT f.place, f.lane, f.tenant, f.time, f.due, f.seq,
               coalesce((SELECT tenant.weight FROM tenant WHERE tenant.name = f.tenant), 1)
               AS weight,
               -- Who stands last bounds what the others can have before that.
               CASE WHEN count(*) OVER () >= room_ THEN max(f.time) OVER () END AS horizon
        FROM (SELECT * FROM first ORDER BY first.time, first.tenant LIMIT room_) AS f
    ), bounded AS (
        SELECT s.*,
               CASE WHEN s.horizon IS NULL THEN room_ ELSE least(room_,
                   1 + greatest(0, s.horizon - greatest(s.time, clock_))
                       / greatest(1, 1000000 / s.weight)) END AS most
        FROM standing AS s
    ), waiting AS (
        SELECT b.tenant, b.time, b.weight, t.place AS turn, w.place, w.lane, w.due, w.seq, w.cost,
               w.size,
               row_number() OVER (
                   PARTITION BY b.tenant
                   ORDER BY (w.lane = b.lane AND w.due = b.due AND w.seq = b.seq) DESC, w.due, w.seq
               ) AS nth
        FROM bounded AS b
        CROSS JOIN LATERAL (
            SELECT b.place, b.lane, b.due, b.seq
            UNION ALL
            SELECT other.place, other.lane, other.due, other.seq
            FROM unnest(lanes_) AS l(lane)
            CROSS JOIN LATERAL (
                SELECT turn.ctid AS place, turn.lane, turn.due, turn.seq, turn.awake
                FROM turn
                WHERE turn.tenant = b.tenant AND turn.lane = l.lane
                ORDER BY turn.version DESC
                LIMIT 1
            ) AS other
            WHERE b.most > 1 AND l.lane <> b.lane AND other.awake = 1
        ) AS t
        CROSS JOIN LATERAL (
            SELECT job.ctid AS place, job.lane, job.due, job.seq, job.cost, job.size
            FROM job
            WHERE job.lane = t.lane
              AND job.tenant = b.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (t.due, t.seq)
              AND job.due <= now_
            ORDER BY job.due, job.seq
            LIMIT b.most
        ) AS w
    ), placed AS (
        SELECT w.tenant, w.turn, w.place AS job, w.lane, w.due, w.seq, w.size,
               CASE WHEN w.nth = 1 THEN w.time ELSE
                   greatest(w.time, clock_)
                   + (sum(1000000::bigint * w.cost / w.weight) OVER earlier)::bigint
               END AS place,
               greatest(w.time, clock_)
               + (sum(1000000::bigint * w.cost / w.weight) OVER upto)::bigint AS after
        FROM waiting AS w
        WINDOW earlier AS (PARTITION BY w.tenant ORDER BY w.nth
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
               upto AS (PARTITION BY w.tenant ORDER BY w.nth ROWS UNBOUNDED PRECEDING)
    ), line AS (
        SELECT placed.*,
               row_number() OVER so_far AS number,
               sum(placed.size) OVER so_far - placed.size AS before
        FROM placed
        WINDOW so_far AS (ORDER BY placed.place, placed.tenant ROWS UNBOUNDED PRECEDING)
    )
    SELECT array_agg(line.job ORDER BY line.number),
           array_agg(first_ + line.number ORDER BY line.number),
           sum(line.size),
           array_agg(line.lane ORDER BY line.number),
           max(line.place) FILTER (WHERE NOT quiet_ OR (first_ + line.number) % 10 <> 0),
           array_agg(line.turn ORDER BY line.number),
           array_agg(line.tenant ORDER BY line.number),
           array_agg(line.due ORDER BY line.number),
           array_agg(line.seq ORDER BY line.number),
           array_agg(line.after ORDER BY line.number)
    INTO jobs_, numbers_, size_, touched_, after_, turns_, tenants_, dues_, seqs_, ends_
    FROM line
    WHERE line.number <= room_ AND (line.number = 1 OR line.before < bytes_);
    after_ := greatest(after_, clock_);
    IF jobs_ IS NOT NULL THEN
        PERFORM move_on(band_, turns_, touched_, tenants_, dues_, seqs_, ends_, now_);
    END IF;
END
$$;

-- take_alone: the same where a single turn stands in line, as in most programs most of the time: then
-- the line is that turn. Gives nothing if there are more, or none.
CREATE OR REPLACE FUNCTION take_alone(
    band_ integer, clock_ bigint, lane_ integer, time_ bigint, now_ bigint, room_ integer,
    bytes_ bigint, first_ bigint, quiet_ boolean,
    OUT jobs_ tid[], OUT numbers_ bigint[], OUT size_ bigint,
    OUT touched_ integer[], OUT after_ bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    turn_ record;
    dues_ bigint[];
    seqs_ bigint[];
    paid_ bigint;
    weight_ integer;
BEGIN
    SELECT t.place, t.tenant, t.time, t.due, t.seq, lead(t.seq) OVER () AS next INTO turn_
    FROM (
        SELECT turn.ctid AS place, turn.tenant, turn.time, turn.due, turn.seq
        FROM turn
        WHERE turn.lane = lane_ AND turn.awake = 1 AND turn.time >= 0 AND turn.time >= time_
        ORDER BY turn.time, turn.tenant
        LIMIT 2
    ) AS t
    LIMIT 1;
    IF turn_.place IS NULL OR turn_.next IS NOT NULL THEN
        RETURN;
    END IF;
    weight_ := coalesce((SELECT tenant.weight FROM tenant WHERE tenant.name = turn_.tenant), 1);
    -- Another lane may have moved its tenant on.
    turn_.time := greatest(turn_.time, (SELECT share.time FROM share
                                        WHERE share.band = band_ AND share.tenant = turn_.tenant
                                        ORDER BY share.time DESC LIMIT 1));
    SELECT array_agg(w.place), array_agg(first_ + w.n), sum(w.size),
           max(w.paid),
           max(CASE WHEN w.n = 1 THEN turn_.time
                    ELSE greatest(turn_.time, clock_) + w.paid - w.step END)
               FILTER (WHERE NOT quiet_ OR (first_ + w.n) % 10 <> 0),
           array_agg(w.due), array_agg(w.seq)
    INTO jobs_, numbers_, size_, paid_, after_, dues_, seqs_
    FROM (
        SELECT j.place, j.due, j.seq, j.size, j.step,
               row_number() OVER so_far AS n,
               (sum(j.step) OVER so_far)::bigint AS paid,
               sum(j.size) OVER so_far - j.size AS before
        FROM (
            SELECT job.ctid AS place, job.due, job.seq, job.size,
                   1000000::bigint * job.cost / weight_ AS step
            FROM job
            WHERE job.lane = lane_
              AND job.tenant = turn_.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (turn_.due, turn_.seq)
              AND job.due <= now_
            ORDER BY job.due, job.seq
            LIMIT room_
        ) AS j
        WINDOW so_far AS (ORDER BY j.due, j.seq ROWS UNBOUNDED PRECEDING)
    ) AS w
    WHERE w.n = 1 OR w.before < bytes_;
    IF jobs_ IS NULL THEN
        RETURN;
    END IF;
    after_ := greatest(after_, clock_);
    touched_ := ARRAY[lane_];
    PERFORM move_on_one(
        band_, turn_.place, lane_, turn_.tenant, dues_[cardinality(dues_)],
        seqs_[cardinality(seqs_)], greatest(turn_.time, clock_) + paid_, now_);
END
$$;

-- leave_line: let those leave the line who stand there in vain: whose head is not due, or is gone.
-- False: there is nobody like that.
CREATE OR REPLACE FUNCTION leave_line(
    lanes_ integer[], times_ bigint[], limit_ integer, now_ bigint
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    WITH idle AS MATERIALIZED (
        SELECT t.place, head.due, head.seq
        FROM unnest(lanes_, times_) AS l(lane, time)
        CROSS JOIN LATERAL (
            SELECT turn.ctid AS place, turn.lane, turn.tenant, turn.due, turn.seq
            FROM turn
            WHERE turn.lane = l.lane AND turn.awake = 1 AND turn.time >= 0 AND turn.time >= l.time
            ORDER BY turn.time, turn.tenant
            LIMIT limit_
        ) AS t
        LEFT JOIN LATERAL (
            SELECT job.due, job.seq
            FROM job
            WHERE job.lane = t.lane
              AND job.tenant = t.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (t.due, t.seq)
            ORDER BY job.due, job.seq
            LIMIT 1
        ) AS head ON true
        WHERE head.seq IS NULL OR head.due > now_
    )
    UPDATE turn
    SET version = nextval('turn_version'),
        due = coalesce(idle.due, turn.due),
        seq = coalesce(idle.seq, turn.seq),
        awake = CASE WHEN idle.seq IS NULL THEN 3 ELSE 0 END
    FROM idle
    WHERE turn.ctid = idle.place;
    RETURN FOUND;
END
$$;

-- take_longest: choose the job that has been due longest, if since before `before_`.
-- Charged like any other, but it leaves the clock alone.
-- in   lanes_, bands_, clocks_, dues_   the lanes, with bands and clocks, and their edges
CREATE OR REPLACE FUNCTION take_longest(
    lanes_ integer[], bands_ integer[], clocks_ bigint[], dues_ bigint[], now_ bigint,
    before_ bigint,
    OUT job_ tid, OUT size_ bigint, OUT touched_ integer
)
LANGUAGE plpgsql AS $$
DECLARE
    found_ record;
BEGIN
    SELECT t.place AS turn, t.lane, t.tenant, l.band, l.clock, j.place, j.due, j.seq, j.cost,
           j.size,
           coalesce((SELECT share.time FROM share
                     WHERE share.band = l.band AND share.tenant = t.tenant
                     ORDER BY share.time DESC LIMIT 1), 0) AS time,
           coalesce((SELECT tenant.weight FROM tenant WHERE tenant.name = t.tenant), 1) AS weight
    INTO found_
    FROM unnest(lanes_, bands_, clocks_, dues_) AS l(lane, band, clock, due)
    CROSS JOIN LATERAL (
        SELECT turn.ctid AS place, turn.lane, turn.tenant, turn.due, turn.seq
        FROM turn
        WHERE turn.lane = l.lane
          AND turn.awake = 1
          AND turn.due >= 0
          AND turn.due >= l.due
          AND turn.due < before_
        ORDER BY turn.due, turn.seq
        LIMIT 1
    ) AS t
    CROSS JOIN LATERAL (
        SELECT job.ctid AS place, job.due, job.seq, job.cost, job.size
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
    ORDER BY t.due, t.seq
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    job_ := found_.place;
    size_ := found_.size;
    touched_ := found_.lane;
    PERFORM move_on_one(
        found_.band, found_.turn, found_.lane, found_.tenant, found_.due, found_.seq,
        greatest(found_.time, found_.clock) + 1000000::bigint * found_.cost / found_.weight,
        now_);
END
$$;
