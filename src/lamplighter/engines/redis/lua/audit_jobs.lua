-- audit_jobs: compare the jobs of a page with the indexes they must be in.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 page
-- RETURNS  list of names and numbers of jobs: in turns, running, by how they ended; of marks and
--          progress found; then list of what is wrong, in words
-- TOUCHES  nothing; reads all that belongs to these jobs. Bound: 256 jobs.
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/states.lua

local P, page = KEYS[1], tonumber(ARGV[2])

local numbers, faults = {}, {}

local function count(name)
  numbers[name] = (numbers[name] or 0) + 1
end

local function fault(id, ...)
  faults[#faults + 1] = 'job ' .. id .. ' ' .. table.concat({ ... })
end

local function check_running(id, run)
  count('running')
  local span = string.format('%.0f', run_lease_ms(run))
  if not redis.call('ZSCORE', P .. 'lease:' .. span, id) then
    fault(id, 'runs, but is not in lease:', span)
  end
  if redis.call('SISMEMBER', P .. 'spans', span) == 0 then
    fault(id, 'runs under a lease of ', span, ' ms, but spans does not have it')
  end
end

local function check_place(id, value, in_turn)
  local due, turn = job_due(value), turn_key(P, job_lane(value), job_tenant(value))
  local at = redis.call('ZSCORE', turn, member_of(job_seq(value), id))
  if not in_turn then
    if at then
      fault(id, 'does not wait, but is in ', turn)
    end
    return
  end
  count('in_turn')
  if not at then
    fault(id, 'waits, but is not in ', turn)
  elseif tonumber(at) ~= due then
    fault(id, 'is due at ', due, ', but stands at ', at, ' in ', turn)
  end
end

local function check_end(id, value, state)
  count(STATES[state])
  local at = redis.call('ZSCORE', P .. 'ended:' .. STATES[state], id)
  local finished = job_finished(value)
  if not at then
    fault(id, 'has ended, but is not in ended:', STATES[state])
  elseif tonumber(at) ~= finished then
    fault(id, 'ended at ', finished, ', but stands at ', at, ' in ended:', STATES[state])
  end
end

local function check(id, value)
  local state = job_state(value)
  local run = redis.call('HGET', P .. 'run', id)
  local held = is_held(P, id)
  if run then
    check_running(id, run)
    if state ~= 'W' then
      fault(id, 'runs, but its record says ', STATES[state])
    end
  end
  check_place(id, value, state == 'W' and not run and not held)
  if TERMINAL[state] then
    check_end(id, value, state)
  elseif state == 'W' and not run and held then
    count('held')
  end
  for _, mark in ipairs({ 'hold', 'cancel', 'progress' }) do
    if redis.call('HEXISTS', P .. mark, id) == 1 then
      count(mark)
    end
  end
end

local text = redis.call('GET', P .. 'page:' .. page) or ''
local seen = {}
for place = 1, #text, 26 do
  local id = string.sub(text, place, place + 25)
  local value = string.byte(id) ~= 0 and brief(P, id)
  if value then
    -- One that was removed and submitted anew may be there twice.
    if math.floor(job_seq(value) / 256) == page and not seen[id] then
      seen[id] = true
      count('jobs')
      check(id, value)
    end
  end
end
local named = {}
for name, number in pairs(numbers) do
  named[#named + 1] = name
  named[#named + 1] = number
end
return { named, faults }
