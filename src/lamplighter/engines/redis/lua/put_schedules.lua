-- put_schedules: create or change schedules, all in one write.
-- KEYS  1 shard
-- ARGV  1 clock  2… per schedule: name, spec, tenant, type, due or '', zones,
--       first occurrence or '', expected version or ''
-- RETURNS  per schedule created | changed | already | conflict | unknown, its version
-- TOUCHES  schedule:<name>, schedules, schedule_names, specs. Bound: 100 schedules.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local NEVER = math.huge

-- A first occurrence that is past by now was missed: the cursor stays before it.
local function create(name, due, first)
  redis.call('ZADD', P .. 'schedule_names', 0, name)
  return {
    failures = 0, backfilling = 0, version = 1, cursor = math.min(now, (first or NEVER) - 1),
    due = due, created = now, fired = 0, skipped = 0, latest = -1, active = NO_JOB,
    last_job = NO_JOB, backfill = '',
  }
end

-- A due time that is later than before could hide what has fallen due since the cursor. And whoever
-- looks at the schedule now, or was to, plans in vain: it is looked at again.
local function change(name, schedule, due)
  local look = redis.call('ZSCORE', P .. 'schedules', name)
  if look and tonumber(look) ~= schedule.due then
    look_at(P, name, schedule, now)
  end
  schedule.version = schedule.version + 1
  schedule.due = (due or NEVER) > (schedule.due or NEVER) and now or due
end

local answers = {}
for at = 2, #ARGV, 8 do
  local name, spec, tenant, type_ = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local due, zones, first = tonumber(ARGV[at + 4]), ARGV[at + 5], tonumber(ARGV[at + 6])
  local version = tonumber(ARGV[at + 7])
  local schedule, answer = read_schedule(P, name), 'already'
  if version and not schedule then
    schedule, answer = { version = 0 }, 'unknown'
  elseif not schedule then
    schedule, answer = create(name, due, first), 'created'
  elseif schedule.type ~= type_ or redis.call('HGET', P .. 'specs', name) ~= spec then
    if version and version ~= schedule.version then
      answer = 'conflict'
    else
      change(name, schedule, due)
      answer = 'changed'
    end
  end
  if answer == 'created' or answer == 'changed' then
    schedule.tenant, schedule.type, schedule.zones, schedule.changed = tenant, type_, zones, now
    write_schedule(P, name, schedule)
    redis.call('HSET', P .. 'specs', name, spec)
    if schedule.due then
      look_at(P, name, schedule, schedule.due)
    end
  end
  answers[#answers + 1] = answer
  answers[#answers + 1] = schedule.version
end
return answers
