-- hold_schedules: keep schedules from being fired until they are unheld; the first mark stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time  3… names
-- RETURNS  per name: done | already | unknown
-- TOUCHES  schedule:<name>, schedules. Bound: 100 schedules.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local mark = mark_at(ARGV[2], now)
local FIRST = 3

local answers = {}
for place = FIRST, #ARGV do
  local name = ARGV[place]
  local schedule, answer = read_schedule(P, name), 'unknown'
  if schedule and schedule.hold then
    answer = 'already'
  elseif schedule then
    schedule.hold, schedule.version = mark, schedule.version + 1
    write_schedule(P, name, schedule)
    redis.call('ZREM', P .. 'schedules', name)
    answer = 'done'
  end
  answers[#answers + 1] = answer
end
return answers
