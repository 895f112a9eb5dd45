-- Arrivals: who submits leaves word of it without a lock, and claims fold it into the turns.
-- Functions without settings of their own are called only by those that have them.

-- fold: let the turns of a band know of the jobs that have arrived. Lock: its queue.
-- Bounded; what is left is seen by the next claim, which is told to come at once.
--
-- Arrivals are new when their transactions were not over at the last look, of which `seen_` is the
-- snapshot. Who only looked for "numbers above the last" would miss what commits late.
--
-- in   lanes_, dues_   all lanes of the band, and their edges among the awake
--      free_           for each lane, whether a job may be handed out at once; see fold_one
-- out  job_, …         the job that was, what it is like, and the clock after it
--      more_           whether some are left
--      all_            whether it found something, and nothing is left
--      touched_        the lanes whose turns have changed
--      new_dues_       the edges after that
CREATE OR REPLACE FUNCTION fold(
    band_ integer, lanes_ integer[], dues_ bigint[], free_ boolean[], clock_ bigint,
    seen_ pg_snapshot, now_ bigint, before_ bigint,
    OUT job_ tid, OUT from_ integer, OUT size_ bigint, OUT after_ bigint,
    OUT more_ boolean, OUT all_ boolean, OUT touched_ integer[], OUT new_dues_ bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    places_ tid[];
    since_ xid8 := '0';
    late_ xid8[] := '{}';
    heads_ integer[];
    firsts_ bigint[];
    one_ record;
BEGIN
    more_ := false;
    all_ := false;
    new_dues_ := dues_;
    -- Transaction numbers begin again in a store that was dumped and restored elsewhere.
    IF pg_snapshot_xmax(seen_) <= pg_snapshot_xmax(pg_current_snapshot()) THEN
        since_ := pg_snapshot_xmax(seen_);
        late_ := ARRAY(SELECT pg_snapshot_xip(seen_));
    END IF;
    SELECT array_agg(a.ctid) INTO places_
    FROM (
        SELECT new.ctid
        FROM unnest(lanes_) AS l(lane)
        CROSS JOIN LATERAL (
            (SELECT arrival.ctid FROM arrival
             WHERE arrival.lane = l.lane AND arrival.xact >= since_
             ORDER BY arrival.xact LIMIT 1000)
            UNION ALL
            (SELECT a.ctid
             FROM unnest(late_) AS x(xact)
             CROSS JOIN LATERAL (
                 SELECT arrival.ctid FROM arrival
                 WHERE arrival.lane = l.lane AND arrival.xact = x.xact LIMIT 1000
             ) AS a)
        ) AS new
        LIMIT 1000
    ) AS a;
    IF places_ IS NULL THEN
        RETURN;
    END IF;
    more_ := cardinality(places_) = 1000;
    all_ := NOT more_;
    IF cardinality(places_) = 1 THEN
        one_ := fold_one(band_, places_[1], lanes_, free_, clock_, now_, before_);
        IF one_.job_ IS NOT NULL THEN
            job_ := one_.job_;
            from_ := one_.lane_;
            size_ := one_.size_;
            after_ := one_.after_;
        ELSIF one_.lane_ IS NOT NULL THEN
            touched_ := ARRAY[one_.lane_];
            new_dues_[array_position(lanes_, one_.lane_)] :=
                least(dues_[array_position(lanes_, one_.lane_)], one_.due_);
        END IF;
        RETURN;
    END IF;
    WITH arrived AS (
        DELETE FROM arrival
        WHERE arrival.ctid = ANY (places_)
        RETURNING arrival.lane, arrival.tenant, arrival.due, arrival.seq
    ), heads AS MATERIALIZED (
        SELECT a.lane, a.tenant, head.due, head.seq, turn.place,
               greatest(
                   coalesce((SELECT share.time FROM share
                             WHERE share.band = band_ AND share.tenant = a.tenant
                             ORDER BY share.time DESC LIMIT 1), 0),
                   clock_) AS time,
               CASE WHEN (SELECT tenant.hold FROM tenant WHERE tenant.name = a.tenant)
                         IS NOT NULL THEN 2
                    WHEN head.due <= now_ THEN 1
                    ELSE 0 END AS wanted
        FROM (
            SELECT DISTINCT ON (arrived.lane, arrived.tenant)
                   arrived.lane, arrived.tenant, arrived.due, arrived.seq
            FROM arrived
            ORDER BY arrived.lane, arrived.tenant, arrived.due, arrived.seq
        ) AS a
        -- What arrived may have been cancelled or held since.
        CROSS JOIN LATERAL (
            SELECT job.due, job.seq
            FROM job
            WHERE job.lane = a.lane
              AND job.tenant = a.tenant
              AND job.state = 'waiting'
              AND job.hold IS NULL
              AND (job.due, job.seq) >= (a.due, a.seq)
            ORDER BY job.due, job.seq
            LIMIT 1
        ) AS head
        LEFT JOIN LATERAL (
            SELECT turn.ctid AS place
            FROM turn
            WHERE turn.tenant = a.tenant AND turn.lane = a.lane
            ORDER BY turn.version DESC
            LIMIT 1
        ) AS turn ON true
    ), moved AS (
        UPDATE turn
        SET version = nextval('turn_version'),
            due = heads.due,
            seq = heads.seq,
            time = CASE WHEN turn.awake = 1 THEN turn.time ELSE heads.time END,
            awake = CASE WHEN turn.awake IN (1, 2) THEN turn.awake ELSE heads.wanted END
        FROM heads
        WHERE turn.ctid = heads.place
          AND (turn.awake = 3 OR (heads.due, heads.seq) < (turn.due, turn.seq))
        RETURNING turn.lane, turn.due
    ), added AS (
        INSERT INTO turn (lane, tenant, version, awake, time, due, seq)
        SELECT heads.lane, heads.tenant, nextval('turn_version'), heads.wanted, heads.time,
               heads.due, heads.seq
        FROM heads
        WHERE heads.place IS NULL
        RETURNING turn.lane, turn.due
    )
    SELECT array_agg(f.lane), array_agg(f.due) INTO heads_, firsts_
    FROM (
        SELECT changed.lane, min(changed.due) AS due
        FROM (SELECT * FROM moved UNION ALL SELECT * FROM added) AS changed
        GROUP BY changed.lane
    ) AS f;
    touched_ := heads_;
    new_dues_ := ARRAY(
        SELECT least(l.due, firsts_[array_position(heads_, l.lane)])
        FROM unnest(lanes_, dues_) WITH ORDINALITY AS l(lane, due, n)
        ORDER BY l.n);
END
$$;

-- fold_one: the same for one arrival, step by step: that costs less than to begin a large statement.
--
-- Where nobody stands in line, a job that is due and has none behind it would join the line, be
-- taken as its first, and leave the turn as it was: that is what becomes of most jobs in a program
-- that is not busy. Such a job is handed out at once. Its tenant pays as it would in line, the turn
-- is not written, and no edge moves. Who is due since before `before_` takes the ordinary way, since
-- hand-outs to the starving are counted differently.
--
-- in   lanes_, free_   the lanes of the band, and for each whether a job may be handed out at once
-- out  lane_, due_     the lane and when its turn is due, if that has changed
--      job_, …         or the job that was handed out, what it is like, and the clock after it
CREATE OR REPLACE FUNCTION fold_one(
    band_ integer, place_ tid, lanes_ integer[], free_ boolean[], clock_ bigint, now_ bigint,
    before_ bigint,
    OUT lane_ integer, OUT due_ bigint, OUT job_ tid, OUT size_ bigint, OUT after_ bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    new_ record;
    head_ record;
    turn_ record;
    tenant_ record;
    time_ bigint;
    share_ tid;
    wanted_ integer;
BEGIN
    DELETE FROM arrival WHERE arrival.ctid = place_
    RETURNING arrival.lane, arrival.tenant, arrival.due, arrival.seq INTO new_;
    SELECT j.*, lead(j.due) OVER () AS next_due, lead(j.seq) OVER () AS next_seq INTO head_
    FROM (
        SELECT job.ctid AS place, job.due, job.seq, job.cost, job.size
        FROM job
        WHERE job.lane = new_.lane
          AND job.tenant = new_.tenant
          AND job.state = 'waiting'
          AND job.hold IS NULL
          AND (job.due, job.seq) >= (new_.due, new_.seq)
        ORDER BY job.due, job.seq
        LIMIT 2
    ) AS j
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT turn.ctid AS place, turn.awake, turn.due, turn.seq INTO turn_
    FROM turn
    WHERE turn.tenant = new_.tenant AND turn.lane = new_.lane
    ORDER BY turn.version DESC
    LIMIT 1;
    IF turn_.awake <> 3 AND (head_.due, head_.seq) >= (turn_.due, turn_.seq) THEN
        RETURN;
    END IF;
    lane_ := new_.lane;
    due_ := head_.due;
    IF turn_.awake IN (1, 2) THEN
        UPDATE turn
        SET version = nextval('turn_version'), due = head_.due, seq = head_.seq
        WHERE turn.ctid = turn_.place;
        RETURN;
    END IF;
    SELECT share.ctid, share.time INTO share_, time_
    FROM share
    WHERE share.band = band_ AND share.tenant = new_.tenant
    ORDER BY share.time DESC
    LIMIT 1;
    time_ := greatest(time_, clock_);
    SELECT tenant.weight, tenant.hold IS NOT NULL AS held INTO tenant_
    FROM tenant
    WHERE tenant.name = new_.tenant;
    IF free_[array_position(lanes_, lane_)]
       AND head_.due BETWEEN before_ AND now_
       AND tenant_.held IS NOT TRUE
       -- What is behind it is all that the turn knows: nothing, or its sleeping head.
       AND (head_.next_due, head_.next_seq) IS NOT DISTINCT FROM
           (CASE WHEN turn_.awake = 0 THEN turn_.due END,
            CASE WHEN turn_.awake = 0 THEN turn_.seq END)
    THEN
        job_ := head_.place;
        size_ := head_.size;
        after_ := time_;
        PERFORM charge(band_, new_.tenant, share_,
                       time_ + 1000000::bigint * head_.cost / coalesce(tenant_.weight, 1));
        RETURN;
    END IF;
    wanted_ := CASE WHEN tenant_.held THEN 2 WHEN head_.due <= now_ THEN 1 ELSE 0 END;
    IF turn_.place IS NULL THEN
        INSERT INTO turn (lane, tenant, version, awake, time, due, seq)
        VALUES (new_.lane, new_.tenant, nextval('turn_version'), wanted_, time_, head_.due,
                head_.seq);
    ELSE
        UPDATE turn
        SET version = nextval('turn_version'), awake = wanted_, time = time_, due = head_.due,
            seq = head_.seq
        WHERE turn.ctid = turn_.place;
    END IF;
END
$$;
