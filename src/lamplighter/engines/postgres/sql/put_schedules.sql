-- put_schedules: create schedules, or change those that are not exactly so. Guard: unique key.
-- Lock: the schedules, in the order of their keys. Index: the key of schedule.
-- Functions without settings of their own are called only by those that have them.
-- in   versions_  of which version each must be: see unexpected_puts; NULL: all as they are
-- out  n, answer, version: one row for each, in no order
CREATE OR REPLACE FUNCTION put_schedules(
    ids_ text[], specs_ text[], tenants_ text[], types_ text[], dues_ bigint[], zones_ text[],
    firsts_ bigint[], versions_ bigint[]
) RETURNS TABLE (n bigint, answer text, version bigint)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    keys_ text[];
    rounds_ bigint[];
    last_ bigint;
    now_ bigint;
    written_ text[];
    unknown_ bigint[] := '{}';
    conflict_ bigint[] := '{}';
BEGIN
    -- Those of one key follow each other, in as many rounds.
    SELECT array_agg(g.key), array_agg(g.nth), max(g.nth) INTO keys_, rounds_, last_
    FROM (
        SELECT k.key, row_number() OVER (PARTITION BY k.key COLLATE "C" ORDER BY u.n) AS nth
        FROM unnest(tenants_, ids_) WITH ORDINALITY AS u(tenant, id, n)
        CROSS JOIN LATERAL (SELECT schedule_key(u.tenant, u.id) AS key) AS k
        ORDER BY u.n
    ) AS g;
    PERFORM lock_schedules(keys_);
    now_ := now_ms();
    FOR round_ IN 1..last_ LOOP
        IF versions_ IS NOT NULL THEN
            SELECT coalesce(array_agg(u.n) FILTER (WHERE u.answer = 'unknown'), '{}'),
                   coalesce(array_agg(u.n) FILTER (WHERE u.answer = 'conflict'), '{}')
            INTO unknown_, conflict_
            FROM unexpected_puts(keys_, specs_, types_, versions_, rounds_, round_) AS u;
        END IF;
        WITH written AS (
            INSERT INTO schedule (tenant, id, spec, type, cursor, due, wake, created, changed, zones)
            -- A first occurrence that is past by now was missed: the cursor stays before it.
            SELECT u.tenant, u.id, u.spec, u.type, least(now_, u.first - 1), u.due,
                   wake_at(u.due, now_), now_, now_, u.zones
            FROM unnest(keys_, ids_, specs_, tenants_, types_, dues_, zones_, firsts_, rounds_)
                 WITH ORDINALITY AS u(key, id, spec, tenant, type, due, zones, first, nth, n)
            WHERE u.nth = round_ AND u.n <> ALL (unknown_ || conflict_)
            ORDER BY u.key COLLATE "C"
            ON CONFLICT (key) DO UPDATE
            SET spec = excluded.spec,
                type = excluded.type,
                version = schedule.version + 1,
                due = due_when_put(schedule.due, excluded.due, now_),
                -- Whoever has it plans in vain, and has not seen to what it was woken for.
                wake = CASE WHEN schedule.wake IS DISTINCT FROM schedule.due
                            THEN least(schedule.wake, now_)
                            ELSE least(schedule.wake, wake_at(
                                due_when_put(schedule.due, excluded.due, now_), now_)) END,
                changed = now_,
                zones = excluded.zones
            WHERE (schedule.spec, schedule.type) <> (excluded.spec, excluded.type)
            RETURNING schedule.key
        )
        SELECT array_agg(written.key) INTO written_ FROM written;
        RETURN QUERY
            SELECT g.n,
                   CASE WHEN g.n = ANY (unknown_) THEN 'unknown'
                        WHEN g.n = ANY (conflict_) THEN 'conflict'
                        WHEN g.key NOT IN (SELECT unnest(written_)) THEN 'already'
                        WHEN s.version = 1 THEN 'created'
                        ELSE 'changed' END,
                   CASE WHEN g.n = ANY (unknown_) THEN 0 ELSE s.version END
            FROM unnest(keys_, rounds_) WITH ORDINALITY AS g(key, nth, n)
            LEFT JOIN LATERAL (
                SELECT schedule.version FROM schedule WHERE schedule.key = g.key LIMIT 1
            ) AS s ON true
            WHERE g.nth = round_;
    END LOOP;
END
$$;

-- unexpected_puts: those of a round that are not what is expected of them. What is there is locked.
-- Index: the key of schedule.
-- in   versions_  of which version it must be; NULL: of any, or not there
-- out  n, answer: unknown | conflict
CREATE OR REPLACE FUNCTION unexpected_puts(
    keys_ text[], specs_ text[], types_ text[], versions_ bigint[], rounds_ bigint[], round_ bigint
) RETURNS TABLE (n bigint, answer text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT u.n,
               CASE WHEN s.version IS NULL THEN 'unknown'
                    WHEN u.version <> s.version AND (u.spec, u.type) <> (s.spec, s.type)
                    THEN 'conflict' END
        FROM unnest(keys_, specs_, types_, versions_, rounds_)
             WITH ORDINALITY AS u(key, spec, type, version, nth, n)
        LEFT JOIN LATERAL (
            SELECT schedule.spec, schedule.type, schedule.version
            FROM schedule
            WHERE schedule.key = u.key
            FOR UPDATE
        ) AS s ON true
        WHERE u.nth = round_ AND u.version IS NOT NULL;
END
$$;

-- due_when_put: when a schedule that was due then, and is put as due now and then, is to be looked at.
-- If that would be later than before, at once: nothing that was due meanwhile is to wait for it.
CREATE OR REPLACE FUNCTION due_when_put(before_ bigint, given_ bigint, now_ bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN before_ IS NOT NULL AND (given_ IS NULL OR given_ > before_) THEN now_
                ELSE given_ END
$$;

-- wake_at: when something due at this time wakes: then, but not before now; never, if never.
CREATE OR REPLACE FUNCTION wake_at(due_ bigint, now_ bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN due_ > now_ THEN due_ WHEN due_ IS NOT NULL THEN now_ END
$$;
