-- put_queue, put_tenant, put_type, enter_queues, remove_queue: what operators set, and which queues
-- there are.

-- name: queue
-- in: name, max_wait
INSERT INTO queue (name, max_wait) VALUES (:name, coalesce(:max_wait, 60000))
ON CONFLICT (name) DO UPDATE SET max_wait = coalesce(:max_wait, queue.max_wait), removed = 0;

-- name: hold_queue
-- The first mark stays.
-- in: mark, name
UPDATE queue SET hold = CASE WHEN :mark IS NULL THEN NULL ELSE coalesce(hold, :mark) END
WHERE name = :name;

-- name: tenant
-- in: name, weight
INSERT INTO tenant (name, weight) VALUES (:name, coalesce(:weight, 1))
ON CONFLICT (name) DO UPDATE SET weight = coalesce(:weight, tenant.weight);

-- name: hold_tenant
-- in: mark, name
UPDATE tenant SET hold = CASE WHEN :mark IS NULL THEN NULL ELSE coalesce(hold, :mark) END
WHERE name = :name;

-- name: rest_turns
-- A held tenant's turns sleep without a time. One look per lane, free of the backlog.
-- in: tenant
UPDATE turn SET awake = 2
WHERE tenant = :tenant AND lane IN (SELECT id FROM lane);

-- name: wake_turns
-- in: tenant, now
UPDATE turn
SET awake = due <= :now,
    time = max(
        coalesce((SELECT share.time FROM share
                  JOIN lane ON lane.band = share.band
                  WHERE lane.id = turn.lane AND share.tenant = turn.tenant), 0),
        (SELECT band.clock FROM band JOIN lane ON lane.band = band.id WHERE lane.id = turn.lane)
    )
WHERE tenant = :tenant AND awake = 2 AND lane IN (SELECT id FROM lane);

-- name: type
-- in: name, mark
INSERT INTO type_setting (name, hold) VALUES (:name, :mark)
ON CONFLICT (name) DO UPDATE
SET hold = CASE WHEN :mark IS NULL THEN NULL ELSE coalesce(type_setting.hold, :mark) END;

-- name: brought
-- How many a tenant has brought. Index: brought_by.
-- in: tenant
SELECT count(*) FROM brought WHERE tenant = :tenant;

-- name: new
-- Those of these names that nobody has brought.
-- in: names
SELECT DISTINCT value FROM json_each(:names) WHERE value NOT IN (SELECT queue FROM brought);

-- name: bring
-- in: queue, tenant
INSERT INTO brought (queue, tenant) VALUES (:queue, :tenant) ON CONFLICT DO NOTHING;

-- name: forget
-- in: queue
DELETE FROM brought WHERE queue = :queue;

-- name: removed
-- in: queue
SELECT removed FROM queue WHERE name = :queue;

-- name: remove
-- in: queue
UPDATE queue SET removed = 1, hold = NULL, max_wait = 60000 WHERE name = :queue;

-- name: served
-- Whether a worker serves it that is not dead.
-- in: since, queue
SELECT 1 FROM worker, json_each(worker.queues) AS one
WHERE worker.beat > :since AND one.value = :queue
LIMIT 1;

-- name: busy
-- Whether a job of these lanes has not ended. Index: job_waiting, job_running, job_held.
-- in: lanes
SELECT EXISTS (
        SELECT 1 FROM job INDEXED BY job_waiting
        WHERE state = 'waiting' AND hold IS NULL AND lane IN (SELECT value FROM json_each(:lanes)))
    OR EXISTS (
        SELECT 1 FROM job INDEXED BY job_running
        WHERE state = 'running' AND lane IN (SELECT value FROM json_each(:lanes)))
    OR EXISTS (
        SELECT 1 FROM job INDEXED BY job_held
        WHERE state = 'waiting' AND hold IS NOT NULL
          AND lane IN (SELECT value FROM json_each(:lanes)));
