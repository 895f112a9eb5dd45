-- unhold_schedules: let held schedules go on, due now and without failures.
-- KEYS  1 shard
-- ARGV  1 clock  2… names
-- RETURNS  per name: done | already | unknown
-- TOUCHES  schedule:<name>, schedules. Bound: 100 schedules.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local FIRST = 2

local answers = {}
for place = FIRST, #ARGV do
  local name = ARGV[place]
  local schedule, answer = read_schedule(P, name), 'unknown'
  if schedule and not schedule.hold then
    answer = 'already'
  elseif schedule then
    schedule.hold, schedule.failures, schedule.version = nil, 0, schedule.version + 1
    write_schedule(P, name, schedule)
    look_at(P, name, schedule, now)
    answer = 'done'
  end
  answers[#answers + 1] = answer
end
return answers
