-- occurrence: what a job tells its schedule. After keys, record and schedule. A job that a schedule
-- has made has its occurrence behind the schedule's id: a NUL, and when it was due as 16 digits. Runs
-- are described in runs.lua, schedules in schedule.lua.

-- Give the run of an occurrence and the class it is in, or nil.
local function find_run(P, key, due)
  for _, class in ipairs({ 'started', 'queued', 'succeeded', 'ended' }) do
    local run = redis.call('ZRANGE', P .. 'runs:' .. class .. ':' .. key, due, due, 'BYSCORE')[1]
    if run then
      return run, class
    end
  end
  return nil
end

-- A job with this value has come to a state: an end, or W when it begins again. Its run follows,
-- and after an end its schedule is due at once, unless nothing follows from it. Nothing happens where
-- no run names the job.
local function tell_schedule(P, id, value, state, now)
  local tenant, args, extras, size = struct.unpack('<I2I4I4I2', value, JOB_TENANT_SIZE)
  local at = JOB_TEXTS + tenant + args + extras
  local schedule, due = string.match(string.sub(value, at, at + size - 1), '^(.*)%z(%-?%d+)$')
  if not schedule then
    return
  end
  local name = job_tenant(value) .. '\1' .. schedule
  local key = encode(name)
  local run, class = find_run(P, key, due)
  if not run or string.sub(run, 28, 53) ~= id then
    return
  end
  local record, begins = P .. 'schedule:' .. key, state == 'W'
  local following = begins and 'started' or state == 'S' and 'succeeded' or 'ended'
  redis.call('ZREM', P .. 'runs:' .. class .. ':' .. key, run)
  redis.call('ZADD', P .. 'runs:' .. following .. ':' .. key, due, string.sub(run, 1, 16)
    .. struct.pack('<I8c1', begins and 0 or now, begins and 'R' or state) .. string.sub(run, 26, 53))
  local known = redis.call('GETRANGE', record, 0, SCHEDULE_TEXTS - 2)
  local failures, backfilling, flags = struct.unpack(SCHEDULE_HEAD, known)
  local unfinished = class == 'started' or class == 'queued'
  if string.sub(run, 26, 26) == 'B' and unfinished ~= begins then
    backfilling = backfilling + (begins and 1 or -1)
  end
  if state == 'S' or state == 'D' then
    failures = state == 'D' and failures + 1 or 0
  end
  redis.call('SETRANGE', record, SCHEDULE_FAILURES - 1, struct.pack('<I4I4', failures, backfilling))
  if begins or bit.band(flags, SCHEDULE_HOLD_FLAG) ~= 0 then
    return
  end
  if state ~= 'S' or schedule_backfill_size(known) > 0
    or bit.band(flags, SCHEDULE_QUEUES_FLAG) ~= 0 and redis.call('EXISTS', P .. 'runs:queued:' .. key) == 1 then
    redis.call('ZADD', P .. 'schedules', 'LT', now, name)
  end
end
