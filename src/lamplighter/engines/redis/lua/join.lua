-- join: enter a worker and publish the types it knows; joining twice is joining once.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 worker  3 host, pid, queues, slots, slot of its versions as JSON  4 ms of silence after which one is
--       dead  5… per type: name .. \0 .. hash, queue, schema and options as JSON
-- RETURNS  settings version, how many workers are not dead
-- TOUCHES  workers, worker:<id>, types, types_seen. Bound: the types of one worker.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local worker, info, dead_ms = ARGV[2], ARGV[3], tonumber(ARGV[4])
local FIRST_TYPE = 5

local versions = {}
for place = FIRST_TYPE, #ARGV, 2 do
  local version, text = ARGV[place], ARGV[place + 1]
  redis.call('HSET', P .. 'types', version, text)
  redis.call('ZADD', P .. 'types_seen', now, version)
  versions[#versions + 1] = version
end
local key = P .. 'worker:' .. encode(worker)
redis.call('HSET', key, 'info', info, 'types', table.concat(versions, '\n'))
redis.call('HSETNX', key, 'joined', now)
redis.call('HSETNX', key, 'running', 0)
redis.call('ZADD', P .. 'workers', now, worker)
local version = tonumber(redis.call('GET', P .. 'settings_version') or '0')
local since = string.format('(%.0f', now - dead_ms)
return { version, redis.call('ZCOUNT', P .. 'workers', since, '+inf') }
