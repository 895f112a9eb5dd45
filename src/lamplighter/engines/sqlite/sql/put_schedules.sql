-- put_schedules: create schedules or change them. Index: schedule_id.

-- name: known
-- in: ids
SELECT schedule.id, schedule.number, schedule.version, schedule.spec, schedule.tenant,
       schedule.type
FROM json_each(:ids) AS given
CROSS JOIN schedule ON schedule.id = given.value;

-- name: insert
-- in: id, spec, tenant, type, due, zones, now, cursor
INSERT INTO schedule (id, spec, tenant, type, due, wake, zones, cursor, created, changed)
VALUES (:id, :spec, :tenant, :type, :due, :due, :zones, :cursor, :now, :now)
RETURNING number;

-- name: change
-- Later than before is now: what had fallen due may not wait for the new time. One that is at rest
-- is looked at when it is due. One that was to be looked at, or is being planned by somebody whose
-- plan is void now, is looked at at once.
-- in: spec, tenant, type, due, zones, now, number
UPDATE schedule
SET spec = :spec,
    tenant = :tenant,
    type = :type,
    zones = :zones,
    version = version + 1,
    changed = :now,
    due = CASE WHEN due IS NULL OR :due <= due THEN :due ELSE :now END,
    wake = CASE
        WHEN wake IS NOT due OR wake <= :now THEN min(:now, coalesce(:due, :now))
        WHEN due IS NULL OR :due <= due THEN :due
        ELSE :now
    END
WHERE number = :number;
