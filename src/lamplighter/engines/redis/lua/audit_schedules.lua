-- audit_schedules: compare some schedules with the indexes they must be in.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 where to begin, as a bound of ZRANGE BYLEX
-- RETURNS  the last name that was looked at, '' when there are no more; list of names and numbers of
--          what was found: schedules, looks, specs; the same as the indexes count them; then list
--          of what is wrong, in words
-- TOUCHES  nothing; reads all that belongs to these schedules. Bound: 50 schedules, 10 runs of each.
--@include lib/keys.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/runs.lua

local P, from = KEYS[1], ARGV[2]
local SCHEDULES, RUNS = 50, 10

local numbers, faults = { schedules = 0, looks = 0, specs = 0 }, {}

local function count(name, found)
  numbers[name] = numbers[name] + (found and 1 or 0)
end

local function fault(name, ...)
  faults[#faults + 1] = 'schedule ' .. string.gsub(name, '\1', '/') .. ' ' .. table.concat({ ... })
end

local function check_look(name, schedule)
  local look = redis.call('ZSCORE', P .. 'schedules', name)
  count('looks', look)
  if look and schedule.hold then
    fault(name, 'is held, but stands in schedules')
  elseif not look and not schedule.hold and schedule.due then
    fault(name, 'is due at ', schedule.due, ', but is not in schedules')
  end
end

-- A run that goes on has a job that does.
local function check_runs(name)
  local key = encode(name)
  for _, class in ipairs({ 'started', 'queued' }) do
    local runs = redis.call('ZRANGE', P .. 'runs:' .. class .. ':' .. key, 0, RUNS - 1)
    for _, run in ipairs(runs) do
      local id = string.sub(run, 28, 53)
      local state = redis.call('GETRANGE', job_key(P, id), 0, 0)
      if state == '' or TERMINAL[state] then
        fault(name, 'has a run that is ', class, ', but its job ', id, ' is over')
      end
    end
  end
end

local names = redis.call('ZRANGE', P .. 'schedule_names', from, '+', 'BYLEX', 'LIMIT', 0, SCHEDULES)
for _, name in ipairs(names) do
  local schedule = read_schedule(P, name)
  count('schedules', schedule)
  local has_spec = redis.call('HEXISTS', P .. 'specs', name) == 1
  count('specs', has_spec)
  if schedule then
    if not has_spec then
      fault(name, 'has nothing in specs')
    end
    check_look(name, schedule)
    check_runs(name)
  else
    fault(name, 'is in schedule_names, but nowhere else')
  end
end
return {
  #names == SCHEDULES and names[#names] or '',
  { 'schedules', numbers.schedules, 'looks', numbers.looks, 'specs', numbers.specs },
  {
    'schedules', redis.call('ZCARD', P .. 'schedule_names'), 'looks',
    redis.call('ZCARD', P .. 'schedules'), 'specs', redis.call('HLEN', P .. 'specs'),
  },
  faults,
}
