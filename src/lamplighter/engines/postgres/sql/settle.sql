-- settle: write what claims came to. Guard: state, lease and nonce; the number alone repeats after
-- a restored store. Lock: the jobs, in the order of their ids, then the schedules of those that end.
-- Index: the key of job.
-- Locked jobs are waited for so long that verbs which meet do not fail each other; then the call fails,
-- and is to be repeated with `skip_`: a client that is stopped while it has one job locked would
-- otherwise keep all from being settled that are settled together with it.
-- Functions without settings of their own are called only by those that have them.
--
-- in   ids_, leases_, nonces_   one per settlement
--      starts_, sizes_, data_   where its result stands in the bytes of all; no size, no result
--      notes_                   why there is no result
--      expired_                 whether to write it only if the lease has ended
--      unstarted_               whether to write it only if the claim has no start mark
--      others_                  JSON, for all but plain successes: at place `n` of the call what
--                               follows (`next`), what instead if a cancel was requested
--                               (`cancelled`), the `outcome`, and whether to keep its `history`
--      progresses_ …            their journals, see record
--      skip_                    whether to leave out jobs that somebody else has locked (busy)
-- out  n, answer, state         one row for each, except for plain successes that were written
CREATE OR REPLACE FUNCTION settle(
    ids_ uuid[], leases_ integer[], nonces_ text[],
    starts_ integer[], sizes_ integer[], data_ bytea, notes_ text[],
    expired_ boolean[], unstarted_ boolean[], others_ jsonb,
    progresses_ text[], firsts_ bigint[], ends_ bigint[],
    places_ integer[], numbers_ integer[], piece_starts_ integer[], piece_sizes_ integer[],
    pieces_ bytea, skip_ boolean
) RETURNS TABLE (n bigint, answer text, state text)
LANGUAGE plpgsql @planned@ SET lock_timeout = '50ms' AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
    asked_ CONSTANT uuid[] := ids_;
    plain_ bigint[];
    written_ bigint[];
    marked_ bigint[];
    others_of_ bigint[];
    states_ text[];
    ends_of_ bigint[];
    schedules_ text[];
    endings_ text[];
    some_ends_of_ bigint[];
    some_schedules_ text[];
BEGIN
    IF skip_ THEN
        PERFORM set_config('lock_timeout', '0', true);
        ids_ := unlocked(ids_);
    END IF;
    IF others_ IS NOT NULL THEN
        written_ := holding(ids_, leases_, nonces_, expired_, unstarted_, now_);
        IF unstarted_ IS NOT NULL THEN
            marked_ := marked(ids_, leases_, nonces_, expired_, unstarted_, now_);
        END IF;
        SELECT array_agg(s.n), array_agg(s.state),
               array_agg(s.n) FILTER (WHERE s.schedule IS NOT NULL),
               array_agg(s.schedule) FILTER (WHERE s.schedule IS NOT NULL),
               array_agg(s.state) FILTER (WHERE s.schedule IS NOT NULL)
        INTO others_of_, states_, ends_of_, schedules_, endings_
        FROM settle_others(written_, ids_, starts_, sizes_, data_, notes_, others_, now_) AS s;
        RETURN QUERY SELECT u.n, 'done', u.state FROM unnest(others_of_, states_) AS u(n, state);
        plain_ := ARRAY(SELECT unnest(written_)
                        EXCEPT
                        SELECT (o ->> 'n')::bigint FROM jsonb_array_elements(others_) AS o);
    END IF;
    IF others_ IS NULL OR cardinality(plain_) > 0 THEN
        WITH ended AS (
            DELETE FROM job
            USING (
                SELECT u.id, u.lease, u.nonce, u.start, u.size, u.note, u.n
                FROM unnest(ids_, leases_, nonces_, starts_, sizes_, notes_)
                     WITH ORDINALITY AS u(id, lease, nonce, start, size, note, n)
                WHERE plain_ IS NULL OR u.n IN (SELECT unnest(plain_))
                ORDER BY u.id, u.n
            ) AS given
            WHERE job.id = given.id
              AND job.state = running_
              AND job.lease = given.lease
              AND job.nonce = given.nonce
            RETURNING
                @kept(job)@, @counts(job)@,
                'succeeded' AS state, NULL AS cancel, now_ AS finished, NULL AS reason,
                substr(data_, given.start, given.size) AS result, given.note AS result_note,
                NULL AS error, NULL AS fingerprint, given.n
        ), @end(ended)@
        SELECT coalesce(array_agg(e.n), '{}'),
               array_agg(e.n) FILTER (WHERE e.schedule IS NOT NULL),
               array_agg(schedule_key(e.tenant, e.schedule)) FILTER (WHERE e.schedule IS NOT NULL)
        INTO plain_, some_ends_of_, some_schedules_
        FROM ended AS e;
        written_ := coalesce(written_, plain_);
    END IF;
    IF progresses_ IS NOT NULL OR ends_ IS NOT NULL OR places_ IS NOT NULL THEN
        PERFORM write_journals(written_, ids_, leases_, progresses_, firsts_, ends_,
                               places_, numbers_, piece_starts_, piece_sizes_, pieces_);
    END IF;
    IF schedules_ IS NOT NULL OR some_schedules_ IS NOT NULL THEN
        -- Whoever fires may need them for long.
        PERFORM set_config('lock_timeout', '0', true);
        PERFORM end_settled(ids_, ends_of_, schedules_, endings_, some_ends_of_, some_schedules_, now_);
    END IF;
    IF cardinality(written_) < cardinality(ids_) THEN
        RETURN QUERY SELECT r.n,
                            CASE WHEN ids_[r.n] IS NULL AND r.answer = 'renewed' THEN 'busy'
                                 ELSE r.answer END,
                            r.state
                     FROM refusals(written_, marked_, asked_, leases_, nonces_) AS r;
    END IF;
END
$$;

-- unlocked: lock those of these jobs that nobody else has locked, and give the ids, in the same order,
-- with NULL in the place of all others. Whether these stand as before is not known yet.
CREATE OR REPLACE FUNCTION unlocked(ids_ uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    mine_ uuid[];
BEGIN
    mine_ := ARRAY(
        SELECT job.id FROM job WHERE job.id = ANY (ids_) ORDER BY job.id FOR UPDATE SKIP LOCKED);
    RETURN ARRAY(
        SELECT CASE WHEN u.id = ANY (mine_) THEN u.id END
        FROM unnest(ids_) WITH ORDINALITY AS u(id, n)
        ORDER BY u.n);
END
$$;

-- holding: lock these jobs, and give the places of the settlements that are to be written: of
-- several for one job, the first whose fence holds.
CREATE OR REPLACE FUNCTION holding(
    ids_ uuid[], leases_ integer[], nonces_ text[], expired_ boolean[], unstarted_ boolean[],
    now_ bigint
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
BEGIN
    PERFORM FROM job WHERE job.id = ANY (ids_) ORDER BY job.id FOR UPDATE;
    RETURN ARRAY(
        SELECT DISTINCT ON (given.id) given.n
        FROM unnest(ids_, leases_, nonces_, expired_, unstarted_)
             WITH ORDINALITY AS given(id, lease, nonce, expired, unstarted, n)
        JOIN job ON job.id = given.id
        WHERE job.state = running_
          AND job.lease = given.lease
          AND job.nonce = given.nonce
          AND (job.expires <= now_ OR given.expired IS NOT TRUE)
          AND (job.started IS DISTINCT FROM job.lease OR given.unstarted IS NOT TRUE)
        ORDER BY given.id, given.n);
END
$$;

-- marked: give the places of the settlements that are not to be written because of a start mark
-- alone. Lock: held already.
CREATE OR REPLACE FUNCTION marked(
    ids_ uuid[], leases_ integer[], nonces_ text[], expired_ boolean[], unstarted_ boolean[],
    now_ bigint
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
BEGIN
    RETURN ARRAY(
        SELECT given.n
        FROM unnest(ids_, leases_, nonces_, expired_, unstarted_)
             WITH ORDINALITY AS given(id, lease, nonce, expired, unstarted, n)
        JOIN job ON job.id = given.id
        WHERE job.state = running_
          AND job.lease = given.lease
          AND job.nonce = given.nonce
          AND job.started = job.lease
          AND given.unstarted
          AND (job.expires <= now_ OR given.expired IS NOT TRUE));
END
$$;

-- settle_others: write those of the others whose fences were found to hold. Lock: held already.
-- out  n, state, key of the schedule: one row for each; the last of those that have ended, if they have one
CREATE OR REPLACE FUNCTION settle_others(
    written_ bigint[], ids_ uuid[], starts_ integer[], sizes_ integer[], data_ bytea,
    notes_ text[], others_ jsonb, now_ bigint
) RETURNS TABLE (n bigint, state text, schedule text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    movers_ bigint[];
    sisters_ integer[];
BEGIN
    -- Suspects, and jobs that only some versions take, wait in lanes of their own.
    IF others_ @> '[{"next": {"suspect": true}}]' OR others_ @> '[{"outcome": "misfit"}]' THEN
        SELECT array_agg(m.n), sister_lanes(array_agg(m.lane), array_agg(m.suspect),
                                            array_agg(m.version))
        INTO movers_, sisters_
        FROM (
            SELECT o.n, job.lane, (o.next ->> 'suspect')::boolean AS suspect,
                   o.next ->> 'version' AS version
            FROM jsonb_to_recordset(others_) AS o(n bigint, next jsonb)
            JOIN job ON job.id = ids_[o.n]
            WHERE o.next ->> 'state' = 'waiting'
              AND (o.next ->> 'suspect' = 'true' OR o.next ->> 'version' IS NOT NULL)
        ) AS m;
    END IF;
    RETURN QUERY
    WITH given AS (
        SELECT o.n, ids_[o.n] AS id, o.outcome, o.history, o.next, o.cancelled
        FROM jsonb_to_recordset(others_)
             AS o(n bigint, outcome text, history boolean, next jsonb, cancelled jsonb)
        WHERE o.n = ANY (written_)
    ), chosen AS MATERIALIZED (
        SELECT given.n, given.id, given.outcome, coalesce(given.history, false) AS history,
               job.generation, job.lease, job.nonce, job.attempt + 1 AS number, job.worker,
               job.claimed, f.state, coalesce(f.delay, 0) AS delay, f.reason, f.attempt, f.crashes,
               f.losses, f.suspect, f.error, f.fingerprint,
               CASE WHEN f.state <> 'waiting'
                    THEN schedule_key(job.tenant, job.schedule) END AS schedule
        FROM given
        JOIN job ON job.id = given.id
        CROSS JOIN LATERAL jsonb_to_record(
            CASE WHEN job.cancel IS NOT NULL THEN coalesce(given.cancelled, given.next)
                 ELSE given.next END
        ) AS f(state text, delay bigint, reason text, attempt integer, crashes integer,
               losses integer, suspect boolean, error text, fingerprint text)
    ), back AS (
        UPDATE job
        SET state = 'waiting',
            due = now_ + chosen.delay,
            lane = coalesce(sisters_[array_position(movers_, chosen.n)], job.lane),
            attempt = chosen.attempt,
            crashes = chosen.crashes,
            losses = chosen.losses,
            suspect = chosen.suspect,
            error = coalesce(chosen.error, job.error),
            fingerprint = coalesce(chosen.fingerprint, job.fingerprint),
            cancel = NULL,
            expires = NULL
        FROM chosen
        WHERE job.id = chosen.id AND chosen.state = 'waiting'
        RETURNING job.lane, job.tenant, job.due, job.seq, job.state, job.hold
    ), told AS (
        @enter(back)@
    ), ended AS (
        DELETE FROM job
        USING chosen
        WHERE job.id = chosen.id AND chosen.state <> 'waiting'
        RETURNING
            @kept(job)@,
            CASE WHEN chosen.state = 'succeeded' THEN job.attempt ELSE chosen.attempt END AS attempt,
            CASE WHEN chosen.state = 'succeeded' THEN job.crashes ELSE chosen.crashes END AS crashes,
            CASE WHEN chosen.state = 'succeeded' THEN job.losses ELSE chosen.losses END AS losses,
            CASE WHEN chosen.state = 'succeeded' THEN job.suspect ELSE chosen.suspect END AS suspect,
            chosen.state, CASE WHEN chosen.state = 'cancelled' THEN job.cancel END AS cancel,
            now_ AS finished, chosen.reason,
            CASE WHEN chosen.state = 'succeeded'
                 THEN substr(data_, starts_[chosen.n], sizes_[chosen.n]) END AS result,
            CASE WHEN chosen.state = 'succeeded' THEN notes_[chosen.n] END AS result_note,
            chosen.error, chosen.fingerprint
    ), @end(ended)@, history AS (
        INSERT INTO attempt (job_id, generation, lease, nonce, number, worker, outcome, started,
                             finished, error)
        SELECT c.id, c.generation, c.lease, c.nonce, c.number, c.worker,
               -- Given back, but nobody will take it again.
               CASE WHEN c.state = 'cancelled' AND NOT c.history THEN 'cancelled'
                    ELSE c.outcome END,
               c.claimed, now_, c.error
        FROM chosen AS c
        WHERE c.state <> 'succeeded' AND (c.history OR c.state <> 'waiting')
        ON CONFLICT DO NOTHING
    )
    SELECT chosen.n, chosen.state, chosen.schedule FROM chosen;
END
$$;

-- end_settled: let schedules know which of their jobs have ended, in the order of the call.
-- in   places in the call, schedules and states; of those in the second lists that is `succeeded`
CREATE OR REPLACE FUNCTION end_settled(
    ids_ uuid[], places_ bigint[], schedules_ text[], states_ text[], plain_places_ bigint[],
    plain_schedules_ text[], now_ bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(e.schedule), array_agg(e.n), array_agg(e.state)
    INTO schedules_, places_, states_
    FROM (
        SELECT u.n, u.schedule, u.state
        FROM unnest(places_, schedules_, states_) AS u(n, schedule, state)
        UNION ALL
        SELECT u.n, u.schedule, 'succeeded'
        FROM unnest(plain_places_, plain_schedules_) AS u(n, schedule)
        ORDER BY 1
    ) AS e;
    PERFORM end_runs(schedules_, ARRAY(SELECT ids_[p.n] FROM unnest(places_) AS p(n)), states_,
                     now_);
END
$$;

-- refusals: answers for the settlements that were not written.
CREATE OR REPLACE FUNCTION refusals(
    written_ bigint[], marked_ bigint[], ids_ uuid[], leases_ integer[], nonces_ text[]
) RETURNS TABLE (n bigint, answer text, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    equals_ boolean := (SELECT count(DISTINCT i) < count(*) FROM unnest(ids_) AS i);
BEGIN
    RETURN QUERY
        SELECT g.n,
               CASE WHEN found.lease IS DISTINCT FROM g.lease
                      OR found.nonce IS DISTINCT FROM g.nonce THEN 'lost'
                    -- Its lease had not ended, or its start was marked: it was left alone.
                    WHEN found.state = 'running' OR later.later
                    THEN CASE WHEN g.n = ANY (marked_) THEN 'started' ELSE 'renewed' END
                    ELSE 'already' END,
               -- What the same call wrote after it had not happened yet.
               CASE WHEN later.later THEN 'running' ELSE found.state END
        FROM unnest(ids_, leases_, nonces_) WITH ORDINALITY AS g(id, lease, nonce, n)
        CROSS JOIN LATERAL (
            SELECT equals_ AND EXISTS (
                SELECT FROM unnest(written_) AS w(n) WHERE w.n > g.n AND ids_[w.n] = g.id
            ) AS later
        ) AS later
        LEFT JOIN LATERAL (
            SELECT job.state, job.lease, job.nonce FROM job WHERE job.id = g.id
            UNION ALL
            SELECT done.state, done.lease, done.nonce FROM done WHERE done.id = g.id
            UNION ALL
            SELECT dead.state, dead.lease, dead.nonce FROM dead WHERE dead.id = g.id
            LIMIT 1
        ) AS found ON true
        WHERE g.n NOT IN (SELECT unnest(written_));
END
$$;
