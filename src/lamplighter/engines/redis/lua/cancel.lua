-- cancel: end what waits, ask what runs; settle decides about that, once.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time  3 reason  4… ids, each once
-- RETURNS  per id: done | requested | already | conflict | unknown, state after it or ''
-- TOUCHES  job, run (reads), hold, cancel, ended:cancelled, the turns of these jobs; their runs and
--          schedules. Bound: 100 ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/changes.lua
--@include lib/occurrence.lua
--@include lib/cancelling.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local mark, reason = mark_at(ARGV[2], now), ARGV[3]
local FIRST_ID = 4

local answers = {}
for place = FIRST_ID, #ARGV do
  answer(answers, cancel_job(P, ARGV[place], mark, reason, now))
end
return answers
