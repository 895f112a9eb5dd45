-- schedule: the value of a schedule. After keys.
--
-- Its value is declared in layout.py. Its name is its tenant, a byte 1, and its id (`schedule_key` in
-- model/ids.py). What it is to do is in the hash `specs`: nobody who fires it reads that, and it may be long.
--
-- It stands in the zset `schedules` by when it is to be looked at next, unless it is held or nobody
-- needs to look.

--@layout schedule

local NO_JOB = string.rep('\0', 26)

local function schedule_key(P, name)
  return P .. 'schedule:' .. encode(name)
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
  if not one.hold then
    redis.call('ZADD', P .. 'schedules', 'LT', string.format('%.0f', due), name)
  end
end
