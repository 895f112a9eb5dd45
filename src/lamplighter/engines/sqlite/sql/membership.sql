-- join, beat, leave, lead: who is alive.

-- name: join
-- in: id, host, pid, queues, slots, version_slot, now
INSERT INTO worker (id, host, pid, queues, slots, version_slot, joined, beat)
VALUES (:id, :host, :pid, :queues, :slots, :version_slot, :now, :now)
ON CONFLICT (id) DO UPDATE SET
    beat = excluded.beat,
    queues = excluded.queues,
    slots = excluded.slots,
    version_slot = excluded.version_slot;

-- name: knows
-- in: worker, name, hash
INSERT INTO worker_type (worker, name, hash) VALUES (:worker, :name, :hash)
ON CONFLICT (worker, name) DO UPDATE SET hash = excluded.hash;

-- name: publish
-- in: name, hash, queue, schema, options, now
INSERT INTO type_version (name, hash, queue, schema, options, seen)
VALUES (:name, :hash, :queue, :schema, :options, :now)
ON CONFLICT (name, hash) DO UPDATE SET
    queue = excluded.queue, schema = excluded.schema, options = excluded.options, seen = excluded.seen;

-- name: beat
-- in: now, running, unstarted, id
UPDATE worker SET beat = :now, running = :running, unstarted = :unstarted WHERE id = :id;

-- name: seen
-- in: now, worker
UPDATE type_version
SET seen = :now
WHERE (name, hash) IN (SELECT name, hash FROM worker_type WHERE worker = :worker);

-- name: leave
-- in: id
DELETE FROM worker WHERE id = :id;

-- name: forget_types
-- in: worker
DELETE FROM worker_type WHERE worker = :worker;

-- name: lead
-- Taken when free, expired, or one's own.
-- in: name, holder, until, now
INSERT INTO role (name, holder, until) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE role.holder = excluded.holder
   OR role.until <= :now
   OR role.until > excluded.until;  -- the clock went back: no term lasts longer than ours

-- name: alive
-- in: since
SELECT count(*) FROM worker WHERE beat > :since;

-- name: version
SELECT value FROM meta WHERE name = 'version';
