-- fire: write plans for schedules, each wholly or not at all.
-- KEYS  1 shard
-- ARGV  1 clock  2… jobs of all plans in their order, as lib/arrivals.lua reads them; then per plan,
--       each of another schedule: name of the schedule; the plan as one text: version I8, cursor i8,
--       next cursor i8, next due i8 with a B before it (0 never), runs to keep that succeeded I4
--       and others I4, number of runs I2 and of skips I2; per run due i8, kind c1, overlap c1; per
--       skip first i8, due i8, how many I8, length B and reason; length I2 and text of backfill, mark
--       to hold it with, zones
-- RETURNS  per plan 'stale'; or 'again' when it is to be sent once more; or queued, skipped, ids of
--          jobs that may run now, joined
-- TOUCHES  what submit and cancel touch; schedules, schedule:<name>, runs:<class>:<name>.
--          Bound: 100 plans, jobs and skips in all, 100 jobs that are cancelled.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua
--@include lib/arrivals.lua
--@include lib/cancelling.lua
--@include lib/runs.lua
--@include lib/judging.lua

local REMOVED_AT_ONCE = 100
local looks, rests = {}, {}

local function read_runs(text, number, place, at)
  local runs = {}
  for n = 1, number do
    local due, kind, overlap
    due, kind, overlap, at = struct.unpack('<i8c1c1', text, at)
    runs[n] = { place = place + n, due = due, kind = kind, overlap = overlap }
    runs.cancelling = runs.cancelling or overlap == 'C'
  end
  return runs, at
end

local function read_skips(text, number, at)
  local skips = {}
  for n = 1, number do
    local first, due, many, reason
    first, due, many, reason, at = struct.unpack('<i8i8I8Bc0', text, at)
    skips[n] = { first = first, due = due, many = many, reason = reason }
  end
  return skips, at
end

-- Read a plan; the jobs of its runs are behind `place`.
local function read_plan(text, place)
  local plan, run_count, skip_count, has_due, at = {}, nil, nil, nil, nil
  plan.version, plan.cursor, plan.next_cursor, has_due, plan.due, plan.keep, plan.keep_others,
    run_count, skip_count, at = struct.unpack('<I8i8i8Bi8I4I4I2I2', text)
  plan.due = has_due == 1 and plan.due or nil
  plan.runs, at = read_runs(text, run_count, place, at)
  plan.skips, at = read_skips(text, skip_count, at)
  plan.backfill, plan.hold, plan.zones = struct.unpack('<I2c0I2c0I2c0', text, at)
  return plan
end

-- Whether a run or a skip that was noted before stands for these.
local function is_covered(schedule, skip)
  if skip.first > schedule.latest then
    return false
  end
  local behind = redis.call('ZRANGE', P .. 'runs:ended:' .. schedule.key, skip.due, '+inf',
    'BYSCORE', 'LIMIT', 0, 1)[1]
  if behind and sub(behind, 25, 25) == 'K' then
    local _, first = read_tail(behind)
    if first and first <= skip.first then
      return true
    end
  end
  return has_run(schedule, skip.due)
end

local function note_skips(schedule, skips)
  for _, skip in ipairs(skips) do
    if not is_covered(schedule, skip) then
      note_skip(schedule, skip.due, 'D', math.max(1, skip.many),
        skip_tail(skip.reason, '', skip.first, skip.many))
    end
  end
end

-- Remove runs beyond what is kept, the earliest due first.
local function forget_runs(key, kept)
  local surplus = redis.call('ZCARD', key) - kept
  if surplus > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, math.min(surplus, REMOVED_AT_ONCE) - 1)
  end
end

-- When the schedule is to be looked at next; written for all schedules together.
local function set_look(schedule, due)
  if schedule.ended and (not due or due > now) then
    due = now
  end
  if schedule.hold or not due then
    rests[#rests + 1] = schedule.name
  else
    looks[#looks + 1] = due
    looks[#looks + 1] = schedule.name
  end
end

-- Where a backfill stands, as text that ends in the number of jobs made for it, with some more.
local function with_made(backfill, more)
  if backfill == '' or more == 0 then
    return backfill
  end
  local before, made = string.match(backfill, '^(.* )(%d+)$')
  return before .. string.format('%.0f', made + more)
end

local function write_plan(schedule, plan)
  if plan.runs.cancelling and is_too_long(schedule) then
    return 'again'
  end
  start_queued(schedule)
  note_skips(schedule, plan.skips)
  for _, run in ipairs(plan.runs) do
    judge(schedule, run.place, run.due, run.kind, run.overlap)
  end
  forget_runs(P .. 'runs:succeeded:' .. schedule.key, plan.keep)
  forget_runs(P .. 'runs:ended:' .. schedule.key, plan.keep_others)
  local holds = plan.hold ~= '' and not schedule.hold
  local backfill = with_made(plan.backfill, schedule.made)
  if holds or backfill ~= schedule.backfill then
    -- These move no cursor, and an older plan must not set them back.
    schedule.version = schedule.version + 1
  end
  schedule.cursor, schedule.due = plan.next_cursor, plan.due
  schedule.backfill, schedule.zones = backfill, plan.zones
  if holds then
    schedule.hold = mark_at(plan.hold, now)
  end
  set_look(schedule, plan.due)
  return { schedule.queued, schedule.missed, table.concat(schedule.started) }
end

local names, ends, keys = {}, {}, {}
for at = BEHIND, #ARGV, 2 do
  local n = #names + 1
  names[n], ends[n] = ARGV[at], encode(ARGV[at])
  keys[n] = P .. 'schedule:' .. ends[n]
end
local values, written, answers, place = redis.call('MGET', unpack(keys)), {}, {}, 0
for n, name in ipairs(names) do
  local plan = read_plan(ARGV[BEHIND + 2 * n - 1], place)
  local schedule = values[n] and begin(name, ends[n], values[n])
  place = place + #plan.runs
  if schedule and schedule.version == plan.version and schedule.cursor == plan.cursor then
    answers[n] = write_plan(schedule, plan)
    written[#written + 1] = keys[n]
    written[#written + 1] = pack_schedule(schedule)
  else
    answers[n] = 'stale'
  end
end
flush()
if #written > 0 then
  redis.call('MSET', unpack(written))
end
if #looks > 0 then
  redis.call('ZADD', P .. 'schedules', unpack(looks))
end
if #rests > 0 then
  redis.call('ZREM', P .. 'schedules', unpack(rests))
end
return answers
