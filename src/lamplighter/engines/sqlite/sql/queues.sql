-- enter_queues, remove_queue: which queues there are, and who has brought them.

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
