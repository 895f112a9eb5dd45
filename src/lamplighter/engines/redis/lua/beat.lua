-- beat: note a sign of life of a worker, and that its types are in use.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 worker  3 how many jobs it runs  4 ms of silence after which one is dead
-- RETURNS  1 when the worker is known, settings version, how many workers are not dead
-- TOUCHES  workers, worker:<id>, types_seen. Bound: the types of one worker.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local worker, running, dead_ms = ARGV[2], ARGV[3], tonumber(ARGV[4])

local function alive()
  return redis.call('ZCOUNT', P .. 'workers', string.format('(%.0f', now - dead_ms), '+inf')
end

local version = tonumber(redis.call('GET', P .. 'settings_version') or '0')
if not redis.call('ZSCORE', P .. 'workers', worker) then
  return { 0, version, alive() }
end
local key = P .. 'worker:' .. encode(worker)
redis.call('ZADD', P .. 'workers', now, worker)
redis.call('HSET', key, 'running', running)
for known in string.gmatch(redis.call('HGET', key, 'types') or '', '[^\n]+') do
  redis.call('ZADD', P .. 'types_seen', 'XX', now, known)
end
return { 1, version, alive() }
