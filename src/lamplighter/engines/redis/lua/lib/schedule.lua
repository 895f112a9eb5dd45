-- schedule: the value of a schedule. After keys. schedule_records.py is the other side.
--
-- A schedule is one string, little-endian:
--   1  failures I4, unfinished jobs of its backfill I4, flags B
--  10  version I8, cursor i8, due i8, created I8, changed I8, fired I8, skipped I8, latest due time of
--      a run i8, last due time that was fired or skipped i8
--  82  job of the active run c26, last job c26; NULs where there is none
-- 134  lengths: tenant I2, type I2, zones I2, hold I2, backfill I2; these parts
-- flags: 1 has a due time, 2 a last one, 4 is held, 8 may have queued runs.
-- Its name is its tenant, a byte 1, and its id (`schedule_key` in model/ids.py).
-- What it is to do is in the hash `specs`: nobody who fires it reads that, and it may be long.
--
-- It stands in the zset `schedules` by when it is to be looked at next, unless it is held or nobody
-- needs to look.

local SCHEDULE = '<I4I4BI8i8i8I8I8I8I8i8i8c26c26I2I2I2I2I2'
local NO_JOB = string.rep('\0', 26)

local function schedule_key(P, name)
  return P .. 'schedule:' .. encode(name)
end

-- Gives everything by name. `due` and `last_due` are nil where there is none; a hold or a backfill
-- that is not there is ''.
local function unpack_schedule(value)
  local failures, backfilling, flags, version, cursor, due, created, changed, fired, skipped, latest,
    last_due, active, last_job, tenant, type_, zones, hold, backfill, at =
    struct.unpack(SCHEDULE, value)
  local type_at = at + tenant
  local zones_at = type_at + type_
  local hold_at = zones_at + zones
  local backfill_at = hold_at + hold
  return {
    failures = failures, backfilling = backfilling, version = version, cursor = cursor,
    due = flags % 2 == 1 and due or nil, created = created, changed = changed, fired = fired,
    skipped = skipped, latest = latest, last_due = flags % 4 >= 2 and last_due or nil,
    queues = flags >= 8, active = active, last_job = last_job,
    tenant = string.sub(value, at, type_at - 1), type = string.sub(value, type_at, zones_at - 1),
    zones = string.sub(value, zones_at, hold_at - 1),
    hold = string.sub(value, hold_at, backfill_at - 1),
    backfill = string.sub(value, backfill_at, backfill_at + backfill - 1),
  }
end

local function pack_schedule(one)
  local flags = (one.due and 1 or 0) + (one.last_due and 2 or 0) + (one.hold ~= '' and 4 or 0)
    + (one.queues and 8 or 0)
  return struct.pack(
    SCHEDULE, one.failures, one.backfilling, flags, one.version, one.cursor, one.due or 0,
    one.created, one.changed, one.fired, one.skipped, one.latest, one.last_due or 0, one.active,
    one.last_job, #one.tenant, #one.type, #one.zones, #one.hold, #one.backfill
  ) .. one.tenant .. one.type .. one.zones .. one.hold .. one.backfill
end

-- Gives a schedule, or nil where there is none.
local function read_schedule(P, name)
  local value = redis.call('GET', schedule_key(P, name))
  return value and unpack_schedule(value) or nil
end

local function write_schedule(P, name, one)
  redis.call('SET', schedule_key(P, name), pack_schedule(one))
end

-- It is to be looked at then, or earlier if that was so before; a held one is not.
local function look_at(P, name, one, due)
  if one.hold == '' then
    redis.call('ZADD', P .. 'schedules', 'LT', string.format('%.0f', due), name)
  end
end
