-- Lanes, bands and holds, interned: read whole when the version has moved, else from memory.

-- name: version
SELECT value FROM meta WHERE name = 'version';

-- name: bump
UPDATE meta SET value = value + 1 WHERE name = 'version';

-- name: bands
SELECT id, queue, level FROM band;

-- name: lanes
SELECT id, band, type, requirement FROM lane;

-- name: held_queues
SELECT name FROM queue WHERE hold IS NOT NULL;

-- name: held_types
SELECT name FROM type_setting WHERE hold IS NOT NULL;

-- name: new_queue
-- in: queue
INSERT INTO queue (name) VALUES (:queue) ON CONFLICT DO NOTHING;

-- name: new_band
-- in: queue, level
INSERT INTO band (queue, level) VALUES (:queue, :level) RETURNING id;

-- name: new_lane
-- in: band, type, requirement
INSERT INTO lane (band, type, requirement) VALUES (:band, :type, :requirement) RETURNING id;
