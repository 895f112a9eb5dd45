-- hold_schedules: keep schedules from being fired until they are unheld; the first mark stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 tenant or ''  3 mark without its time  4… ids
-- RETURNS  per id: done | already | unknown
-- TOUCHES  schedule:<id>, schedules. Bound: 100 ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local tenant, mark = ARGV[2], mark_at(ARGV[3], now)
local FIRST_ID = 4

local answers = {}
for place = FIRST_ID, #ARGV do
  local name = ARGV[place]
  local schedule, answer = read_schedule_of(P, name, tenant), 'unknown'
  if schedule and schedule.hold ~= '' then
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
