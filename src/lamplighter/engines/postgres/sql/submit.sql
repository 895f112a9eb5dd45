-- submit: store new jobs. Only inserts: no row is shared, no lock is taken.
-- Guard: unique id; unique (tenant, scope, key). Both wait for whoever is writing the same.
-- Functions without settings of their own are called only by those that have them.
--
-- in   queues_ … requirements_  the lanes of the call, each once
--      lane_of_, tenants_, …    one per job; what is missing at the end counts as the first lane,
--                               the first tenant, no delay, no extras, … and is not sent at all
--      starts_, sizes_, args_   where the arguments of each job stand in the bytes of all
-- out  n, answer, id            one row for each job that was not created, and none for the others

-- lanes_of: the numbers of lanes, in their order; new ones are made, with their bands and queues.
CREATE OR REPLACE FUNCTION lanes_of(
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[]
) RETURNS integer[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    lanes_ integer[];
    lane_ integer;
BEGIN
    -- One by one: a call has few lanes, and a set of one is dearer than one.
    FOR n_ IN 1..cardinality(queues_) LOOP
        SELECT lane.id INTO lane_
        FROM lane
        WHERE lane.queue = queues_[n_]
          AND lane.level = levels_[n_]
          AND lane.type = types_[n_]
          AND lane.requirement = requirements_[n_];
        IF NOT FOUND THEN
            PERFORM make_lanes(queues_, levels_, types_, requirements_);
            RETURN lanes_of(queues_, levels_, types_, requirements_);
        END IF;
        lanes_[n_] := lane_;
    END LOOP;
    RETURN lanes_;
END
$$;

-- make_lanes: make those of these lanes that are new, with their bands and queues. All in one
-- order, so that two callers with the same new lanes wait for each other once.
CREATE OR REPLACE FUNCTION make_lanes(
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO queue (name)
    SELECT DISTINCT g.queue COLLATE "C" FROM unnest(queues_) AS g(queue) ORDER BY 1
    ON CONFLICT DO NOTHING;
    INSERT INTO band (queue, level)
    SELECT DISTINCT g.queue COLLATE "C", g.level
    FROM unnest(queues_, levels_) AS g(queue, level)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    INSERT INTO lane (band, queue, level, type, requirement)
    SELECT band.id, g.queue, g.level, g.type, g.requirement
    FROM (
        SELECT u.queue COLLATE "C" AS queue, u.level, u.type COLLATE "C" AS type,
               u.requirement COLLATE "C" AS requirement
        FROM unnest(queues_, levels_, types_, requirements_) AS u(queue, level, type, requirement)
        ORDER BY 1, 2, 3, 4
    ) AS g
    JOIN band ON band.queue = g.queue AND band.level = g.level
    ON CONFLICT DO NOTHING;
END
$$;

-- sister_lanes: the lanes to which jobs of these move, one for each; see `next_requirement` in
-- model/job.py. Without a version they keep theirs; `suspects_` NULL: they get the requirement back
-- with which they were submitted.
CREATE OR REPLACE FUNCTION sister_lanes(lanes_ integer[], suspects_ boolean[], versions_ text[])
RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    queues_ text[];
    levels_ smallint[];
    types_ text[];
    requirements_ text[];
BEGIN
    SELECT array_agg(lane.queue ORDER BY u.n), array_agg(lane.level ORDER BY u.n),
           array_agg(lane.type ORDER BY u.n),
           array_agg(CASE WHEN suspects_ IS NULL THEN base.requirement
                          ELSE concat_ws('+', nullif(base.requirement, ''), nullif(
                              coalesce(u.version, parts.version), ''),
                              CASE WHEN u.suspect OR shared.requirement <> lane.requirement
                                   THEN 'alone' END) END ORDER BY u.n)
    INTO queues_, levels_, types_, requirements_
    FROM unnest(lanes_, suspects_, versions_) WITH ORDINALITY AS u(lane, suspect, version, n)
    JOIN lane ON lane.id = u.lane
    CROSS JOIN LATERAL (
        SELECT regexp_replace(lane.requirement, '(^|[+])alone$', '') AS requirement
    ) AS shared
    CROSS JOIN LATERAL (
        SELECT substring(shared.requirement FROM '(?:^|[+])(version:[0-9]+|no_version)$') AS version
    ) AS parts
    CROSS JOIN LATERAL (
        SELECT regexp_replace(shared.requirement, '(^|[+])(version:[0-9]+|no_version)$', '')
               AS requirement
    ) AS base;
    RETURN CASE WHEN queues_ IS NOT NULL
                THEN lanes_of(queues_, levels_, types_, requirements_) END;
END
$$;

-- submit_one: the same for a single job without a key, in as few statements as there can be: most
-- of what a small transaction costs is to begin its statements. Each is a look by a unique key.
-- For the same reason it has no settings, and names everything in full: what others have put into
-- the schemas of the caller's search path is not called. And an id that is among the jobs fails with
-- unique_violation, since to ask for that first is dearer: the caller then submits as for many.
-- out  false: it was there before, and has ended
CREATE OR REPLACE FUNCTION submit_one(
    queue_ text, level_ integer, type_ text, requirement_ text, id_ uuid, tenant_ text,
    args_ bytea, delay_ bigint, instant_ bigint, extras_ text, delivery_ text,
    cost_ integer, schedule_ text, mark_ text
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    now_ bigint := @schema@.now_ms();
    due_ bigint := greatest(now_, coalesce(instant_, now_ + delay_));
    lane_ integer;
    seq_ bigint;
BEGIN
    INSERT INTO @schema@.job (seq, id, lane, tenant, state, due, created, args, extras, delivery,
                              cost, size, schedule, hold)
    SELECT pg_catalog.nextval('@schema@.job_seq'::pg_catalog.regclass), id_, lane.id, tenant_,
           'waiting', due_, now_, args_, extras_, delivery_, cost_, pg_catalog.length(args_),
           schedule_, CASE WHEN mark_ IS NOT NULL THEN @schema@.mark_at(mark_, now_) END
    FROM @schema@.lane
    WHERE lane.queue = queue_
      AND lane.level = level_
      AND lane.type = type_
      AND lane.requirement = requirement_
    RETURNING job.seq, job.lane INTO seq_, lane_;
    IF seq_ IS NULL THEN
        PERFORM @schema@.lanes_of(ARRAY[queue_], ARRAY[level_::smallint], ARRAY[type_],
                                  ARRAY[requirement_]);
        RETURN @schema@.submit_one(
            queue_, level_, type_, requirement_, id_, tenant_, args_, delay_, instant_, extras_,
            delivery_, cost_, schedule_, mark_);
    END IF;
    -- Only now: a job that has just ended has left `job`, and is surely to be seen where it went.
    IF mark_ IS NULL THEN
        INSERT INTO @schema@.arrival (lane, tenant, due, seq)
        SELECT lane_, tenant_, due_, seq_
        WHERE NOT EXISTS (SELECT FROM @schema@.dead WHERE dead.id = id_)
          AND NOT EXISTS (SELECT FROM @schema@.done WHERE done.id = id_);
    ELSE
        PERFORM
        WHERE NOT EXISTS (SELECT FROM @schema@.dead WHERE dead.id = id_)
          AND NOT EXISTS (SELECT FROM @schema@.done WHERE done.id = id_);
    END IF;
    IF NOT FOUND THEN
        DELETE FROM @schema@.job WHERE job.id = id_;
        RETURN false;
    END IF;
    RETURN true;
END
$$;

-- submit_and_tell: submit_one, and a word to those who wait, in one round trip. The word has a
-- transaction of its own, after the commit, because a NOTIFY keeps others from committing theirs
-- until it is committed, and this one need not wait for the disk.
CREATE OR REPLACE PROCEDURE submit_and_tell(
    queue_ text, level_ integer, type_ text, requirement_ text, id_ uuid, tenant_ text,
    args_ bytea, delay_ bigint, instant_ bigint, extras_ text, delivery_ text,
    cost_ integer, schedule_ text, mark_ text, channel_ text, word_ text, INOUT created_ boolean
)
LANGUAGE plpgsql AS $$
BEGIN
    created_ := @schema@.submit_one(
        queue_, level_, type_, requirement_, id_, tenant_, args_, delay_, instant_, extras_, delivery_,
        cost_, schedule_, mark_);
    COMMIT;
    IF created_ THEN
        PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
                pg_catalog.pg_notify(channel_, word_);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION submit(
    queues_ text[], levels_ smallint[], types_ text[], requirements_ text[],
    ids_ uuid[], lane_of_ integer[], tenants_ text[],
    starts_ integer[], sizes_ integer[], args_ bytea,
    delays_ bigint[], instants_ bigint[], extras_ text[], deliveries_ text[], costs_ integer[],
    schedules_ text[], held_ boolean[], mark_ text,
    scopes_ text[], keys_ text[], bodies_ text[]
) RETURNS TABLE (n bigint, answer text, id uuid)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    lanes_ integer[] := lanes_of(queues_, levels_, types_, requirements_);
    hold_ text := CASE WHEN held_ IS NOT NULL THEN mark_at(mark_, now_) END;
    fresh_ uuid[];
    ended_ uuid[];
    known_ bigint[];
    answers_ text[];
    owners_ uuid[];
BEGIN
    IF keys_ IS NOT NULL THEN
        SELECT array_agg(k.n), array_agg(k.answer), array_agg(k.owner)
        INTO known_, answers_, owners_
        FROM take_keys(ids_, tenants_, scopes_, keys_, bodies_, now_) AS k;
    END IF;
    fresh_ := insert_jobs(ids_, lanes_, lane_of_, tenants_, starts_, sizes_, args_, delays_,
                          instants_, extras_, deliveries_, costs_, schedules_, held_, hold_, known_,
                          now_);
    -- Only now: a job that has just ended has left `job`, and is surely to be seen where it went.
    ended_ := ended_of(fresh_);
    IF ended_ IS NOT NULL THEN
        fresh_ := ARRAY(SELECT unnest(fresh_) EXCEPT SELECT unnest(ended_));
        PERFORM take_back(ended_, fresh_);
    END IF;
    IF cardinality(fresh_) = cardinality(ids_) THEN
        RETURN;
    END IF;
    IF keys_ IS NOT NULL THEN
        -- The id was there before, or came from somebody else meanwhile: its key is not taken.
        DELETE FROM idempotency
        USING (
            SELECT coalesce(g.tenant, tenants_[1]) AS tenant, g.scope, g.key, g.id
            FROM unnest(ids_, tenants_, scopes_, keys_)
                 WITH ORDINALITY AS g(id, tenant, scope, key, n)
            WHERE g.key IS NOT NULL
              AND g.n NOT IN (SELECT unnest(known_))
              AND g.id NOT IN (SELECT unnest(fresh_))
        ) AS lost
        WHERE idempotency.tenant = lost.tenant
          AND idempotency.scope = lost.scope
          AND idempotency.key = lost.key
          AND idempotency.job_id = lost.id;
    END IF;
    RETURN QUERY
        SELECT k.n, k.answer, k.owner
        FROM unnest(known_, answers_, owners_) AS k(n, answer, owner)
        UNION ALL
        SELECT g.n, 'already', g.id
        FROM (
            SELECT u.id, u.n, row_number() OVER (PARTITION BY u.id ORDER BY u.n) AS nth
            FROM unnest(ids_) WITH ORDINALITY AS u(id, n)
            WHERE known_ IS NULL OR u.n NOT IN (SELECT unnest(known_))
        ) AS g
        WHERE g.nth > 1 OR g.id NOT IN (SELECT unnest(fresh_));
END
$$;

-- insert_jobs: store those that are new, but not those at the known places; gives their ids.
-- They are numbered in the order of the call and written in the order of their ids, so that two
-- calls with the same new ids do not wait for each other.
CREATE OR REPLACE FUNCTION insert_jobs(
    ids_ uuid[], lanes_ integer[], lane_of_ integer[], tenants_ text[],
    starts_ integer[], sizes_ integer[], args_ bytea,
    delays_ bigint[], instants_ bigint[], extras_ text[], deliveries_ text[], costs_ integer[],
    schedules_ text[], held_ boolean[], hold_ text, known_ bigint[], now_ bigint
) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    fresh_ uuid[];
BEGIN
    WITH fresh AS (
        INSERT INTO job (seq, id, lane, tenant, state, due, created, args, extras, delivery, cost,
                         size, schedule, hold)
        SELECT g.seq,
               g.id,
               lanes_[coalesce(g.lane, 1)],
               coalesce(g.tenant, tenants_[1]),
               'waiting',
               CASE WHEN g.instant IS NULL THEN now_ + coalesce(g.delay, 0)
                    ELSE greatest(now_, g.instant) END,
               now_,
               substr(args_, g.start, g.size),
               g.extras,
               g.delivery,
               coalesce(g.cost, 1),
               g.size,
               g.schedule,
               CASE WHEN g.held THEN hold_ END
        FROM (
            SELECT nextval('job_seq') AS seq, u.*
            FROM unnest(ids_, lane_of_, tenants_, starts_, sizes_, delays_, instants_, extras_,
                        deliveries_, costs_, schedules_, held_)
                 WITH ORDINALITY AS u(id, lane, tenant, start, size, delay, instant, extras,
                                      delivery, cost, schedule, held, n)
            WHERE known_ IS NULL OR u.n NOT IN (SELECT unnest(known_))
            OFFSET 0
        ) AS g
        ORDER BY g.id
        ON CONFLICT (id) DO NOTHING
        RETURNING job.id, job.lane, job.tenant, job.due, job.seq, job.state, job.hold
    ), told AS (
        @enter(fresh)@
    )
    SELECT coalesce(array_agg(fresh.id), '{}') INTO fresh_ FROM fresh;
    RETURN fresh_;
END
$$;

-- take_back: remove jobs that were just stored; where one of them arrived for others, they do now.
CREATE OR REPLACE FUNCTION take_back(ids_ uuid[], others_ uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH removed AS (
        DELETE FROM job WHERE job.id = ANY (ids_) RETURNING job.lane, job.tenant, job.seq
    ), untold AS (
        DELETE FROM arrival
        USING removed
        WHERE arrival.lane = removed.lane AND arrival.seq = removed.seq
        RETURNING arrival.lane, arrival.tenant
    ), others AS (
        SELECT job.*
        FROM job
        JOIN untold ON untold.lane = job.lane AND untold.tenant = job.tenant
        WHERE job.id = ANY (others_)
    )
    @enter(others)@;
END
$$;

-- ended_of: which of these jobs have ended and are still kept; NULL for none.
-- New ids follow each other closely, so that a look between the first and the last of them nearly
-- always answers for all. Index: done_id, the key of dead.
CREATE OR REPLACE FUNCTION ended_of(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    first_ uuid;
    last_ uuid;
    found_ uuid[];
BEGIN
    IF cardinality(ids_) = 1 THEN
        first_ := ids_[1];
        last_ := ids_[1];
    ELSE
        SELECT i.id INTO first_ FROM unnest(ids_) AS i(id) ORDER BY i.id LIMIT 1;
        SELECT i.id INTO last_ FROM unnest(ids_) AS i(id) ORDER BY i.id DESC LIMIT 1;
    END IF;
    IF NOT EXISTS (SELECT FROM done WHERE done.id BETWEEN first_ AND last_)
       AND NOT EXISTS (SELECT FROM dead WHERE dead.id BETWEEN first_ AND last_) THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(e.id) INTO found_
    FROM (
        SELECT done.id FROM done WHERE done.id = ANY (ids_)
        UNION ALL
        SELECT dead.id FROM dead WHERE dead.id = ANY (ids_)
    ) AS e;
    RETURN found_;
END
$$;

-- take_keys: enter the keys of new jobs; answers for the jobs that must not be created.
-- Whoever is entering one of these keys is waited for: then it is theirs, or still to be had.
-- Jobs with equal ids or keys are looked at one after the other, in as many rounds.
CREATE OR REPLACE FUNCTION take_keys(
    ids_ uuid[], tenants_ text[], scopes_ text[], keys_ text[], bodies_ text[], now_ bigint
) RETURNS TABLE (n bigint, answer text, owner uuid)
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
#variable_conflict use_column
DECLARE
    left_ bigint[] := ARRAY(SELECT generate_series(1, cardinality(ids_)));
    round_ bigint[];
    won_ bigint[];
    answered_ bigint[];
    created_ uuid[] := '{}';
BEGIN
    WHILE cardinality(left_) > 0 LOOP
        -- Of equals, the first.
        round_ := ARRAY(
            SELECT g.n
            FROM (
                SELECT u.n,
                       u.key,
                       row_number() OVER (PARTITION BY u.id ORDER BY u.n) AS of_id,
                       row_number() OVER (
                           PARTITION BY coalesce(u.tenant, tenants_[1]), u.scope, u.key
                           ORDER BY u.n
                       ) AS of_key
                FROM unnest(ids_, tenants_, scopes_, keys_)
                     WITH ORDINALITY AS u(id, tenant, scope, key, n)
                WHERE u.n IN (SELECT unnest(left_))
            ) AS g
            WHERE g.of_id = 1 AND (g.of_key = 1 OR g.key IS NULL));
        -- An id that is known is answered for, whatever its key.
        answered_ := ARRAY(
            SELECT r.n
            FROM unnest(round_) AS r(n)
            WHERE ids_[r.n] IN (SELECT unnest(created_)) OR is_kept(ids_[r.n]));
        RETURN QUERY SELECT k.n, 'already', ids_[k.n] FROM unnest(answered_) AS k(n);
        left_ := ARRAY(SELECT unnest(left_) EXCEPT SELECT unnest(answered_));
        round_ := ARRAY(SELECT unnest(round_) EXCEPT SELECT unnest(answered_));
        -- The others are created if they have no key, or one that nobody had.
        WITH entered AS (
            INSERT INTO idempotency (tenant, scope, key, body, job_id, created)
            SELECT g.tenant, g.scope, g.key, g.body, g.id, now_
            FROM (
                SELECT coalesce(u.tenant, tenants_[1]) COLLATE "C" AS tenant,
                       u.scope COLLATE "C" AS scope, u.key COLLATE "C" AS key, u.body, u.id
                FROM unnest(ids_, tenants_, scopes_, keys_, bodies_)
                     WITH ORDINALITY AS u(id, tenant, scope, key, body, n)
                WHERE u.key IS NOT NULL AND u.n IN (SELECT unnest(round_))
            ) AS g
            ORDER BY g.tenant, g.scope, g.key
            ON CONFLICT DO NOTHING
            RETURNING idempotency.job_id
        )
        SELECT coalesce(array_agg(g.n), '{}') INTO won_
        FROM unnest(ids_, keys_) WITH ORDINALITY AS g(id, key, n)
        WHERE g.n IN (SELECT unnest(round_))
          AND (g.key IS NULL OR g.id IN (SELECT entered.job_id FROM entered));
        created_ := created_ || ARRAY(SELECT ids_[w.n] FROM unnest(won_) AS w(n));
        left_ := ARRAY(SELECT unnest(left_) EXCEPT SELECT unnest(won_));
        round_ := ARRAY(SELECT unnest(round_) EXCEPT SELECT unnest(won_));
        FOR n, answer, owner IN
            SELECT g.n,
                   CASE WHEN i.body <> g.body THEN 'conflict'
                        WHEN i.job_id IN (SELECT unnest(created_)) OR is_kept(i.job_id)
                        THEN 'already'
                        ELSE 'gone' END,
                   i.job_id
            FROM unnest(tenants_, scopes_, keys_, bodies_)
                 WITH ORDINALITY AS g(tenant, scope, key, body, n)
            CROSS JOIN LATERAL (
                SELECT idempotency.body, idempotency.job_id
                FROM idempotency
                WHERE idempotency.tenant = coalesce(g.tenant, tenants_[1])
                  AND idempotency.scope = g.scope
                  AND idempotency.key = g.key
                LIMIT 1
            ) AS i
            WHERE g.n IN (SELECT unnest(round_))
        LOOP
            -- A key that has aged out just now is not found, and tried again.
            left_ := array_remove(left_, n);
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;

-- is_kept: whether a job exists, in whatever state. Index: the keys of job and dead, done_id.
CREATE OR REPLACE FUNCTION is_kept(id_ uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT EXISTS (SELECT FROM job WHERE job.id = id_)
            OR EXISTS (SELECT FROM done WHERE done.id = id_)
            OR EXISTS (SELECT FROM dead WHERE dead.id = id_)
    );
END
$$;
