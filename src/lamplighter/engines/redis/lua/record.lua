-- record: keep what running attempts have to say; refuse what is no longer their own.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2… per recording: id; its fence; its journal
-- RETURNS  per recording 'held' or 'lost'
-- TOUCHES  run (reads), progress, log:<id>. Bound: 100 recordings.
--@include lib/fence.lua
--@include lib/journal.lua

local P = KEYS[1]
local FIRST = 2

local ids, answers = {}, {}
for place = FIRST, #ARGV, 3 do
  ids[#ids + 1] = ARGV[place]
end
for n, run in ipairs(redis.call('HMGET', P .. 'run', unpack(ids))) do
  local fence, journal = ARGV[3 * n], ARGV[3 * n + 1]
  if holds(run, fence) then
    write_journal(P, ids[n], struct.unpack('<I4', fence), journal)
    answers[n] = 'held'
  else
    answers[n] = 'lost'
  end
end
return answers
