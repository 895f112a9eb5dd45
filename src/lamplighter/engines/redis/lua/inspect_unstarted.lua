-- inspect_unstarted: read which of their jobs workers have not started.
-- KEYS  1 shard, always 0
-- ARGV  1 clock, not used  2… workers
-- RETURNS  per worker the ids of these jobs, in one text
-- TOUCHES  nothing; reads worker:<id>. Bound: 500 workers.
--@include lib/keys.lua

local P = KEYS[1]
local FIRST = 2

local found = {}
for place = FIRST, #ARGV do
  found[#found + 1] = redis.call('HGET', P .. 'worker:' .. encode(ARGV[place]), 'unstarted') or ''
end
return found
