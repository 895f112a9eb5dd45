-- record: keep what running attempts have to say; refuse what is no longer their own.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2… per recording: id; its fence, and 1 if its start is to be marked; its
--       journal
-- RETURNS  per recording 'held' or 'lost'
-- TOUCHES  run, progress, log:<id>. Bound: 100 recordings.
--@include lib/record.lua
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
    if string.sub(fence, 21) == '1' then
      mark_start(P, ids[n], run)
    end
    answers[n] = 'held'
  else
    answers[n] = 'lost'
  end
end
return answers
