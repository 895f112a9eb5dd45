-- hold_schedules: keep schedules from being fired, where the first mark stays; or let held ones go on,
-- due now and without failures.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time to hold, '' to unhold  3… names
-- RETURNS  per name: done | already | unknown
-- TOUCHES  schedule:<name>, schedules. Bound: 100 schedules.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua
--@include lib/schedule.lua

local P, now, mark = KEYS[1], now_ms(ARGV[1]), ARGV[2]
local FIRST = 3

local function change(name)
  local schedule = read_schedule(P, name)
  if not schedule then
    return 'unknown'
  elseif (mark ~= '') == (schedule.hold ~= nil) then
    return 'already'
  end
  schedule.version = schedule.version + 1
  if mark ~= '' then
    schedule.hold = mark_at(mark, now)
    redis.call('ZREM', P .. 'schedules', name)
  else
    schedule.hold, schedule.failures = nil, 0
    look_at(P, name, schedule, now)
  end
  write_schedule(P, name, schedule)
  return 'done'
end

local answers = {}
for place = FIRST, #ARGV do
  answers[#answers + 1] = change(ARGV[place])
end
return answers
