-- put_queue, put_tenant, put_type: what operators set.

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
