-- What the operators' verbs on schedules read first. Index: schedule_id.

-- name: current
-- in: ids, tenant
SELECT schedule.id, schedule.number, schedule.hold IS NOT NULL
FROM json_each(:ids) AS given
CROSS JOIN schedule ON schedule.tenant = :tenant AND schedule.id = given.value;
