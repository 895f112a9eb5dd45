-- start: mark the starts of claims; refuse what is no longer their own. A recording that says nothing
-- else: it must also be written when the server's memory is used up, or nothing would start any more.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2… per claim: id; its fence
-- RETURNS  per claim 'held' or 'lost'
-- TOUCHES  run. Bound: 100 claims.
--@flags allow-oom
--@include lib/record.lua
--@include lib/fence.lua

local P = KEYS[1]
local FIRST = 2

local ids, answers = {}, {}
for place = FIRST, #ARGV, 2 do
  ids[#ids + 1] = ARGV[place]
end
for n, run in ipairs(redis.call('HMGET', P .. 'run', unpack(ids))) do
  if holds(run, ARGV[2 * n + 1]) then
    mark_start(P, ids[n], run)
    answers[n] = 'held'
  else
    answers[n] = 'lost'
  end
end
return answers
