-- inspect_workers: read workers, those silent for longest first.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 sign of life from which to begin, or -inf  3 how many of that time to leave out
-- RETURNS  now, 2 and 3 to go on with, then per worker: id, last sign of life, joined, running,
--          info, types; none: that was all. One that lives may come twice
-- TOUCHES  nothing; reads workers, worker:<id>. Bound: 500 workers.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/paging.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local score, skipped = ARGV[2], tonumber(ARGV[3])
local WORKERS = 500

local given
given, score, skipped = page_of(P .. 'workers', score, skipped, WORKERS)
local found = { now, score, skipped }
for place = 1, #given, 2 do
  local worker = given[place]
  local kept = redis.call('HMGET', P .. 'worker:' .. encode(worker), 'joined', 'running', 'info',
    'types')
  found[#found + 1] = { worker, given[place + 1], unpack(kept) }
end
return found
