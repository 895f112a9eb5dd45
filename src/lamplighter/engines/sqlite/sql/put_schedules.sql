-- put_schedules: create schedules or change them. Index: schedule_id.

-- name: known
-- in: keys
SELECT schedule.tenant, schedule.id, schedule.number, schedule.version, schedule.spec,
       schedule.type
FROM json_each(:keys) AS given
CROSS JOIN schedule ON schedule.tenant = json_extract(given.value, '$[0]')
    AND schedule.id = json_extract(given.value, '$[1]');

-- name: insert
-- in: tenant, id, spec, type, due, zones, now, cursor
INSERT INTO schedule (tenant, id, spec, type, due, wake, zones, cursor, created, changed)
VALUES (:tenant, :id, :spec, :type, :due, :due, :zones, :cursor, :now, :now)
RETURNING number;

-- name: change
-- Later than before is now: what had fallen due may not wait for the new time. One that is at rest
-- is looked at when it is due. One that was to be looked at, or is being planned by somebody whose
-- plan is void now, is looked at at once.
-- in: spec, type, due, zones, now, number
UPDATE schedule
SET spec = :spec,
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
