-- prune: retention, in bounded steps. Only terminal records ever go.
--
-- A day of `done` that is past its retention goes whole: first, step by step, those of its jobs
-- about which more is kept than the record, then the table with all the others. Jobs leave one by
-- one where no day is over or none was made: when less than a day is kept, when there are too
-- many, and from `done_other`.
-- Functions without settings of their own are called only by those that have them.
--
-- in   finished_ms_, dead_ms_, key_ms_  how long things are kept
--      finished_count_                  how many finished jobs are kept at most
--      floor_ms_                        the age below which nothing goes
-- out  jobs, keys, others, more         what is gone, and whether to come again at once
CREATE OR REPLACE FUNCTION prune(
    finished_ms_ bigint, finished_count_ bigint, dead_ms_ bigint, key_ms_ bigint,
    floor_ms_ bigint, limit_ integer
) RETURNS TABLE (jobs bigint, keys bigint, others bigint, more boolean)
LANGUAGE plpgsql @planned@ AS $$
DECLARE
    now_ bigint := now_ms();
    young_ bigint := now_ - floor_ms_;
    edge_ bigint := least(young_, now_ - finished_ms_);
    surplus_ bigint;
    day_ record;
    ids_ uuid[];
    fitting_ uuid[];
    requests_ bigint;
    shares_ bigint;
BEGIN
    -- What a server forgets of this is done again.
    PERFORM set_config('synchronous_commit', 'off', true);
    surplus_ := surplus(finished_count_);
    SELECT * INTO day_ FROM prune_day(edge_, young_, surplus_, limit_);
    jobs := day_.passed;
    more := day_.more;
    IF day_.dropped THEN
        -- Nobody can read or write finished jobs until this is committed: at once.
        keys := 0;
        others := 0;
        RETURN NEXT;
        RETURN;
    END IF;
    IF jobs < limit_ THEN
        ids_ := old_jobs(edge_, least(young_, now_ - dead_ms_), finished_ms_ < 86400000,
                         limit_ - jobs);
        fitting_ := fitting(ids_);
        jobs := jobs + cardinality(remove_jobs(fitting_));
        more := more OR cardinality(fitting_) < cardinality(ids_);
    END IF;
    IF jobs < limit_ AND NOT more THEN
        surplus_ := CASE WHEN jobs > 0 AND surplus_ > 0 THEN surplus(finished_count_)
                         ELSE surplus_ END;
        ids_ := ARRAY(
            SELECT done.id
            FROM done
            WHERE done.finished < young_
            ORDER BY done.finished, done.seq
            LIMIT greatest(0, least(limit_ - jobs, surplus_)));
        fitting_ := fitting(ids_);
        jobs := jobs + cardinality(remove_jobs(fitting_));
        more := cardinality(fitting_) < cardinality(ids_);
    END IF;
    keys := prune_keys(now_ - key_ms_, limit_);
    requests_ := prune_requests(now_ - 3600000, limit_);
    PERFORM mistrust_pulses();
    shares_ := prune_shares(limit_);
    others := requests_ + shares_ + prune_members(now_);
    more := more OR limit_ IN (jobs, keys, requests_, shares_);
    -- At the end, for the same reason.
    PERFORM make_days();
    RETURN NEXT;
END
$$;

-- surplus: by how many there are more finished jobs than are to be kept; 0 where their tables are too
-- small for that, so that nobody counts them: a row takes more than 100 bytes.
CREATE OR REPLACE FUNCTION surplus(keep_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sum(pg_relation_size(i.inhrelid)) / 100
        FROM pg_inherits AS i WHERE i.inhparent = 'done'::regclass) <= keep_ THEN
        RETURN 0;
    END IF;
    RETURN (SELECT count(*) FROM done) - keep_;
END
$$;

-- old_jobs: finished and dead jobs past their ages, oldest first. Index: done_finished, of
-- `done_other` alone unless every one counts, and dead_finished.
CREATE OR REPLACE FUNCTION old_jobs(
    finished_ bigint, dead_ bigint, every_one_ boolean, limit_ bigint
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    ids_ uuid[];
BEGIN
    IF every_one_ OR NOT days_are_ours() THEN
        ids_ := ARRAY(
            SELECT done.id FROM done
            WHERE done.finished < finished_
            ORDER BY done.finished, done.seq
            LIMIT limit_);
    ELSE
        ids_ := ARRAY(
            SELECT done_other.id FROM done_other
            WHERE done_other.finished < finished_
            ORDER BY done_other.finished, done_other.seq
            LIMIT limit_);
    END IF;
    RETURN ids_ || ARRAY(
        SELECT dead.id FROM dead
        WHERE dead.finished < dead_
        ORDER BY dead.finished, dead.seq
        LIMIT limit_ - cardinality(ids_));
END
$$;

-- fitting: the first of these jobs, until the pieces of their logs fill a step: 16 MiB at most.
CREATE OR REPLACE FUNCTION fitting(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT counted.id
        FROM (
            SELECT g.id, g.n,
                   sum((SELECT count(*) FROM log WHERE log.job_id = g.id)) OVER (
                       ORDER BY g.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                   ) AS before
            FROM unnest(ids_) WITH ORDINALITY AS g(id, n)
        ) AS counted
        WHERE coalesce(counted.before, 0) < 1000
        ORDER BY counted.n);
END
$$;

-- ── days ────────────────────────────────────────────────────────────────────────────────────────

-- days: the days of `done` that are tables of their own, oldest first, from and up to when.
-- Those that act as the owner call it: names leave nothing to be found elsewhere.
CREATE OR REPLACE FUNCTION days() RETURNS TABLE (name text, start bigint, finish bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, @schema@, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT d.name, d.start, d.start + 86400000::bigint
        FROM (
            SELECT c.relname::text AS name,
                   extract(epoch FROM pg_catalog.to_date(
                       pg_catalog.right(c.relname::text, 8), 'YYYYMMDD'::text))::bigint
                   * 1000::bigint AS start
            FROM pg_catalog.pg_inherits AS i
            JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent = '@schema@.done'::pg_catalog.regclass::oid
              AND c.relname::text ~ '^done_[0-9]{8}$'::text
        ) AS d
        ORDER BY d.start;
END
$$;

-- days_are_ours: whether the functions here may make and drop tables, whoever calls them.
CREATE OR REPLACE FUNCTION days_are_ours() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, @schema@, pg_temp AS $$
    SELECT pg_catalog.pg_has_role(p.proowner, c.relowner, 'USAGE'::text)
       AND pg_catalog.has_schema_privilege(p.proowner, c.relnamespace, 'CREATE'::text)
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_proc AS p
      ON p.pronamespace = c.relnamespace AND p.proname = 'drop_day'::name
    WHERE c.oid = '@schema@.done'::pg_catalog.regclass::oid
$$;

-- make_days: make the tables of today and of the next three days. What finishes on a day that has
-- none goes to `done_other`, and stays there. As the owner of the store, whoever calls it.
CREATE OR REPLACE FUNCTION make_days() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off SET lock_timeout = '100ms' AS $$
DECLARE
    day_ms_ CONSTANT bigint := 86400000;
    today_ bigint := @schema@.now_ms() / day_ms_;
    start_ bigint;
    name_ text;
BEGIN
    FOR start_ IN
        SELECT d * day_ms_ FROM pg_catalog.generate_series(today_, today_ + 3::bigint) AS d
        EXCEPT
        SELECT days.start FROM @schema@.days()
        ORDER BY 1
    LOOP
        name_ := 'done_'::text || pg_catalog.to_char(
            pg_catalog.timezone('UTC'::text, pg_catalog.to_timestamp(
                (start_ / 1000::bigint)::double precision)), 'YYYYMMDD'::text);
        BEGIN
            CONTINUE WHEN NOT @schema@.days_are_ours() OR EXISTS (
                SELECT FROM @schema@.done_other AS o
                WHERE o.finished >= start_ AND o.finished < start_ + day_ms_);
            EXECUTE pg_catalog.format(
                'CREATE TABLE @schema@.%I (LIKE @schema@.done INCLUDING DEFAULTS)'::text, name_);
            EXECUTE pg_catalog.format(
                'ALTER TABLE @schema@.done ATTACH PARTITION @schema@.%I '
                'FOR VALUES FROM (%s) TO (%s)'::text, name_, start_, start_ + day_ms_);
        EXCEPTION
            -- Somebody reads all of `done`, or somebody else makes it: there is time until then.
            WHEN lock_not_available OR duplicate_table OR check_violation THEN
                RETURN;
        END;
    END LOOP;
END
$$;

-- drop_day: remove a day with all its jobs; false when it is in use. As the owner of the store.
CREATE OR REPLACE FUNCTION drop_day(name_ text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp
SET lock_timeout = '100ms' AS $$
BEGIN
    -- Whoever may call this can remove nothing that is young.
    IF NOT EXISTS (
        SELECT FROM @schema@.days()
        WHERE days.name = name_ AND days.finish <= @schema@.now_ms() - 900000::bigint
    ) THEN
        RETURN false;
    END IF;
    EXECUTE pg_catalog.format('DROP TABLE @schema@.%I'::text, name_);
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

-- prune_day: go on with the oldest day that is past its retention, or beyond the number of jobs to
-- keep with all before it, and drop it when all of it was looked at. `meta` keeps how far we are.
-- Index: done_finished.
CREATE OR REPLACE FUNCTION prune_day(
    edge_ bigint, young_ bigint, surplus_ bigint, limit_ integer
) RETURNS TABLE (passed bigint, more boolean, dropped boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    day_ record;
    finished_ bigint;
    seq_ bigint;
    ids_ uuid[];
    ends_ bigint[];
    seqs_ bigint[];
    fitting_ uuid[];
BEGIN
    passed := 0;
    more := false;
    dropped := false;
    SELECT * INTO day_ FROM days() ORDER BY days.start LIMIT 1;
    IF NOT FOUND OR NOT days_are_ours() OR day_.finish > young_ OR (
        day_.finish > edge_ AND surplus_ < greatest(1, (
            SELECT count(*) FROM done WHERE done.finished < day_.finish))
    ) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT coalesce(max(meta.value) FILTER (WHERE meta.name = day_.name), day_.start),
           coalesce(max(meta.value) FILTER (WHERE meta.name = day_.name || '.seq'), -1)
    INTO finished_, seq_
    FROM meta;
    SELECT coalesce(array_agg(d.id), '{}'), array_agg(d.finished), array_agg(d.seq)
    INTO ids_, ends_, seqs_
    FROM (
        SELECT done.id, done.finished, done.seq
        FROM done
        WHERE done.finished >= day_.start
          AND done.finished < day_.finish
          AND (done.finished, done.seq) > (finished_, seq_)
        ORDER BY done.finished, done.seq
        LIMIT limit_
    ) AS d;
    fitting_ := fitting(ids_);
    passed := cardinality(fitting_);
    PERFORM remove_jobs(ARRAY(
        SELECT f.id FROM unnest(fitting_) AS f(id)
        WHERE (SELECT 1 FROM attempt WHERE attempt.job_id = f.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM log WHERE log.job_id = f.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM progress WHERE progress.job_id = f.id LIMIT 1) IS NOT NULL));
    IF passed < limit_ AND passed = cardinality(ids_) THEN
        dropped := drop_day(day_.name);
        more := dropped;
    ELSE
        more := true;
    END IF;
    IF EXISTS (SELECT FROM days() WHERE days.name = day_.name) THEN
        INSERT INTO meta (name, value)
        SELECT place.name, place.value
        FROM (VALUES (day_.name, ends_[passed]), (day_.name || '.seq', seqs_[passed]))
             AS place(name, value)
        WHERE place.value IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    ELSE
        DELETE FROM meta WHERE meta.name IN (day_.name, day_.name || '.seq');
    END IF;
    RETURN NEXT;
END
$$;

-- ── what else has aged out ──────────────────────────────────────────────────────────────────────

-- prune_keys: remove keys older than this whose jobs are gone. Index: idempotency_age.
-- Keys whose jobs are still there are many, perhaps: each step looks at some, and the next goes on.
CREATE OR REPLACE FUNCTION prune_keys(before_ bigint, limit_ integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    from_ bigint := coalesce((SELECT meta.value FROM meta WHERE meta.name = 'keys'), 0);
    seen_ integer;
    last_ bigint;
    gone_ bigint;
BEGIN
    WITH seen AS MATERIALIZED (
        SELECT idempotency.tenant, idempotency.scope, idempotency.key, idempotency.created,
               is_kept(idempotency.job_id) AS kept
        FROM idempotency
        WHERE idempotency.created >= from_ AND idempotency.created < before_
        ORDER BY idempotency.created
        -- With all that were made in the same millisecond, so that the next step can begin after it.
        FETCH FIRST (10 * limit_) ROWS WITH TIES
    ), gone AS (
        DELETE FROM idempotency
        USING (SELECT * FROM seen WHERE NOT seen.kept ORDER BY seen.created LIMIT limit_) AS aged
        WHERE idempotency.tenant = aged.tenant
          AND idempotency.scope = aged.scope
          AND idempotency.key = aged.key
        RETURNING 1
    )
    SELECT count(*), max(seen.created), (SELECT count(*) FROM gone)
    INTO seen_, last_, gone_
    FROM seen;
    DELETE FROM meta WHERE meta.name = 'keys' AND gone_ < limit_;
    IF seen_ >= 10 * limit_ AND gone_ < limit_ THEN
        INSERT INTO meta (name, value) VALUES ('keys', last_ + 1)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
    RETURN gone_;
END
$$;

-- prune_requests: forget claims that nobody will repeat. Index: request_age.
CREATE OR REPLACE FUNCTION prune_requests(before_ bigint, limit_ integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone_ bigint;
BEGIN
    DELETE FROM request
    WHERE request.nonce = ANY (ARRAY(
        SELECT aged.nonce
        FROM request AS aged
        WHERE aged.at < before_
        ORDER BY aged.at
        LIMIT limit_));
    GET DIAGNOSTICS gone_ = ROW_COUNT;
    RETURN gone_;
END
$$;

-- mistrust_pulses: let claims look at all arrivals of a band of which one is left that they should
-- have seen. That can be after a store was restored elsewhere, where transaction numbers begin again.
-- Index: arrival_new. Lock: the queues.
CREATE OR REPLACE FUNCTION mistrust_pulses() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    bands_ integer[];
BEGIN
    bands_ := missed_bands();
    IF bands_ IS NOT NULL AND try_queues(bands_) THEN
        -- A claim may have been at it just now.
        UPDATE pulse
        SET version = nextval('turn_version'), seen = NULL
        WHERE pulse.ctid = ANY (ARRAY(
            SELECT p.place
            FROM unnest(missed_bands()) AS b(band)
            CROSS JOIN LATERAL (
                @pulse_of(b.band)@
            ) AS p
            WHERE b.band = ANY (bands_)));
    END IF;
END
$$;

-- missed_bands: the bands with an arrival that was there at the last look; NULL for none.
CREATE OR REPLACE FUNCTION missed_bands() RETURNS integer[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT array_agg(DISTINCT lane.band)
        FROM lane
        CROSS JOIN LATERAL (
            SELECT arrival.xact FROM arrival
            WHERE arrival.lane = lane.id
            ORDER BY arrival.xact LIMIT 1
        ) AS a
        CROSS JOIN LATERAL (
            @pulse_of(lane.band)@
        ) AS p
        WHERE pg_visible_in_snapshot(a.xact, p.seen));
END
$$;

-- try_queues: take the locks of these bands' queues, if that needs no long wait. Whoever prunes has
-- locked jobs already, and whoever has a queue may be waiting for one of those.
CREATE OR REPLACE FUNCTION try_queues(bands_ integer[]) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM lock_queues(ARRAY(SELECT band.queue FROM band WHERE band.id = ANY (bands_)));
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

-- prune_shares: a share below the clock says nothing once its tenant has no jobs in the band. It goes,
-- with its empty turns, when the clock has left it far behind: who comes back soon need not look for
-- it among the dead. Each step looks at some pages, whichever. Lock: the queues.
CREATE OR REPLACE FUNCTION prune_shares(limit_ integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    far_ CONSTANT bigint := 10000000000;
    bands_ integer[];
    tenants_ text[];
    shares_ tid[];
BEGIN
    SELECT array_agg(idle.band), array_agg(idle.tenant) INTO bands_, tenants_
    FROM (
        SELECT share.band, share.tenant
        FROM share TABLESAMPLE SYSTEM (
            least(100, 10 * limit_ / greatest(1, pg_relation_size('share') / 8192.0)))
        WHERE share.time < (SELECT pulse.clock FROM pulse WHERE pulse.band = share.band
                            ORDER BY pulse.version DESC LIMIT 1) - far_
        LIMIT limit_
    ) AS idle;
    IF bands_ IS NULL OR NOT try_queues(bands_) THEN
        RETURN 0;
    END IF;
    -- Somebody may have come back meanwhile.
    SELECT array_agg(i.band), array_agg(i.tenant), array_agg(newest.place)
    INTO bands_, tenants_, shares_
    FROM unnest(bands_, tenants_) AS i(band, tenant)
    CROSS JOIN LATERAL (
        SELECT share.ctid AS place, share.time FROM share
        WHERE share.band = i.band AND share.tenant = i.tenant
        ORDER BY share.time DESC LIMIT 1
    ) AS newest
    WHERE newest.time < (SELECT pulse.clock FROM pulse WHERE pulse.band = i.band
                         ORDER BY pulse.version DESC LIMIT 1) - far_
      AND NOT EXISTS (
          SELECT FROM lane
          CROSS JOIN LATERAL (
              @turn_of(lane.id, i.tenant)@
          ) AS turn
          WHERE lane.band = i.band AND turn.awake <> @empty@);
    DELETE FROM turn
    WHERE turn.ctid = ANY (ARRAY(
        SELECT t.place
        FROM unnest(bands_, tenants_) AS i(band, tenant)
        CROSS JOIN LATERAL (SELECT lane.id FROM lane WHERE lane.band = i.band OFFSET 0) AS lane
        CROSS JOIN LATERAL (
            @turn_of(lane.id, i.tenant)@
        ) AS t));
    DELETE FROM share WHERE share.ctid = ANY (shares_);
    RETURN coalesce(cardinality(shares_), 0);
END
$$;

-- prune_members: workers silent for a day, and versions of types that none has had for a week.
CREATE OR REPLACE FUNCTION prune_members(now_ bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone_ bigint;
    more_ bigint;
BEGIN
    DELETE FROM worker WHERE worker.beat < now_ - 86400000;
    GET DIAGNOSTICS gone_ = ROW_COUNT;
    DELETE FROM worker_type
    WHERE NOT EXISTS (SELECT FROM worker WHERE worker.id = worker_type.worker);
    GET DIAGNOSTICS more_ = ROW_COUNT;
    gone_ := gone_ + more_;
    DELETE FROM type_version
    WHERE type_version.seen < now_ - 7 * 86400000::bigint
      AND NOT EXISTS (
          SELECT FROM worker_type
          WHERE worker_type.name = type_version.name AND worker_type.hash = type_version.hash);
    GET DIAGNOSTICS more_ = ROW_COUNT;
    RETURN gone_ + more_;
END
$$;
