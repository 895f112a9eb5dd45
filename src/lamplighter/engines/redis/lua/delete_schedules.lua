-- delete_schedules: remove schedules and their runs; queued jobs are cancelled, others go on.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time  3 reason  4… names
-- RETURNS  per name: done | unknown, or again when it is to be sent once more
-- TOUCHES  schedule:<name>, schedules, schedule_names, specs, runs:<class>:<name>; what cancel touches.
--          Bound: 100 schedules, 100 jobs that are cancelled.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua
--@include lib/cancelling.lua
--@include lib/runs.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local mark, reason = mark_at(ARGV[2], now), ARGV[3]
local FIRST = 4
local cancels = 100

local function remove(name, key)
  local runs = P .. 'runs:'
  redis.call('UNLINK', P .. 'schedule:' .. key, runs .. 'queued:' .. key, runs .. 'started:' .. key,
    runs .. 'succeeded:' .. key, runs .. 'ended:' .. key)
  redis.call('ZREM', P .. 'schedules', name)
  redis.call('ZREM', P .. 'schedule_names', name)
  redis.call('HDEL', P .. 'specs', name)
end

-- The schedule goes with the last of its queued jobs.
local function delete(name)
  if not read_schedule(P, name) then
    return 'unknown'
  end
  local key = encode(name)
  local number = redis.call('ZCARD', P .. 'runs:queued:' .. key)
  local jobs = queued_runs(P, key, cancels)
  if number <= cancels then
    remove(name, key)
  end
  for _, id in ipairs(jobs) do
    cancel_job(P, id, mark, reason, now)
  end
  local all = number <= cancels
  cancels = cancels - #jobs
  return all and 'done' or 'again'
end

local answers = {}
for place = FIRST, #ARGV do
  answers[#answers + 1] = delete(ARGV[place])
end
return answers
