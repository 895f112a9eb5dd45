-- leave: take a worker out; an unknown one is no error.
-- KEYS  1 shard, always 0
-- ARGV  1 clock, not used  2 worker
-- RETURNS  1 when it was there
-- TOUCHES  workers, worker:<id>. Bound: one worker.
--@flags allow-oom
--@include lib/keys.lua

local P, worker = KEYS[1], ARGV[2]

redis.call('DEL', P .. 'worker:' .. encode(worker))
return redis.call('ZREM', P .. 'workers', worker)
