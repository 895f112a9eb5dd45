-- join, beat, leave, lead: who is alive. Nothing here needs to survive a crash of the server.
-- Who joins or beats is told how many workers are not dead, which they are after 30 s of silence.

-- join: enter a worker and publish the types it knows.
-- Rows that workers share are written in the order of their keys, so that no two wait in a circle.
CREATE OR REPLACE FUNCTION "join"(
    id_ text, host_ text, pid_ integer, queues_ text, slots_ integer, version_slot_ integer,
    names_ text[], hashes_ text[], homes_ text[], schemas_ text[], options_ text[]
) RETURNS TABLE (version bigint, workers bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO worker (id, host, pid, queues, slots, version_slot, joined, beat)
    VALUES (id_, host_, pid_, queues_, slots_, version_slot_, now_, now_)
    ON CONFLICT (id) DO UPDATE
    SET beat = excluded.beat,
        queues = excluded.queues,
        slots = excluded.slots,
        version_slot = excluded.version_slot;
    DELETE FROM worker_type WHERE worker_type.worker = id_;
    INSERT INTO worker_type (worker, name, hash)
    SELECT DISTINCT ON (t.name) id_, t.name, t.hash
    FROM unnest(names_, hashes_) WITH ORDINALITY AS t(name, hash, place)
    ORDER BY t.name, t.place DESC;
    INSERT INTO type_version (name, hash, queue, schema, options, seen)
    SELECT DISTINCT ON (t.name COLLATE "C", t.hash COLLATE "C")
           t.name, t.hash, t.home, t.schema, t.options, now_
    FROM unnest(names_, hashes_, homes_, schemas_, options_) WITH ORDINALITY
         AS t(name, hash, home, schema, options, place)
    ORDER BY t.name COLLATE "C", t.hash COLLATE "C", t.place DESC
    ON CONFLICT (name, hash) DO UPDATE
    SET queue = excluded.queue,
        schema = excluded.schema,
        options = excluded.options,
        seen = excluded.seen;
    version := (SELECT meta.value FROM meta WHERE meta.name = 'settings');
    workers := (SELECT count(*) FROM worker WHERE worker.beat > now_ - 30000);
    RETURN NEXT;
END
$$;

-- beat: note a sign of life. What a worker knows counts as seen, to the minute: it is kept for days.
CREATE OR REPLACE FUNCTION beat(id_ text, running_ integer, unstarted_ uuid[])
RETURNS TABLE (known boolean, version bigint, workers bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE worker SET beat = now_, running = running_, unstarted = unstarted_ WHERE worker.id = id_;
    known := FOUND;
    UPDATE type_version
    SET seen = now_
    FROM (
        SELECT type_version.name, type_version.hash
        FROM worker_type
        JOIN type_version USING (name, hash)
        WHERE worker_type.worker = id_ AND type_version.seen < now_ - 60000
        FOR UPDATE OF type_version SKIP LOCKED
    ) AS stale
    WHERE type_version.name = stale.name AND type_version.hash = stale.hash;
    version := (SELECT meta.value FROM meta WHERE meta.name = 'settings');
    workers := (SELECT count(*) FROM worker WHERE worker.beat > now_ - 30000);
    RETURN NEXT;
END
$$;

-- leave: take a worker out.
CREATE OR REPLACE FUNCTION leave(id_ text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM worker WHERE worker.id = id_;
    DELETE FROM worker_type WHERE worker_type.worker = id_;
END
$$;

-- lead: take a role when it is free, over, or one's own.
CREATE OR REPLACE FUNCTION lead(role_ text, holder_ text, term_ms_ bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO role (name, holder, until) VALUES (role_, holder_, now_ + term_ms_)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE role.holder = excluded.holder
       OR role.until <= now_
       OR role.until > excluded.until;  -- the clock went back: no term lasts longer than ours
    RETURN FOUND;
END
$$;
