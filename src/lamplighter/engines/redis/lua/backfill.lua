-- backfill: begin to run occurrences of the past.
-- KEYS  1 shard
-- ARGV  1 clock  2 name  3 what it is  4 the same, and how far it has come: nowhere
-- RETURNS  done | already | conflict | unknown
-- TOUCHES  schedule:<name>, schedules. Bound: one schedule.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local name, what, text = ARGV[2], ARGV[3], ARGV[4]

local schedule = read_schedule(P, name)
if not schedule then
  return 'unknown'
elseif schedule.backfill ~= '' then
  return string.sub(schedule.backfill, 1, #what) == what and 'already' or 'conflict'
end
-- A plan that knows nothing of it would end it.
schedule.backfill, schedule.version = text, schedule.version + 1
write_schedule(P, name, schedule)
look_at(P, name, schedule, now)
return 'done'
