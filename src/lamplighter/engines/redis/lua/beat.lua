-- beat: note a sign of life of a worker, and that its types are in use.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 worker  3 how many jobs it runs  4 ms of silence after which one is dead
--       5 1 where all is in this shard  6 ids of its claimed jobs whose handlers were not called
-- RETURNS  1 when the worker is known, settings version, how many workers are not dead, 1 when no
--          lease has ended and no schedule is due
-- TOUCHES  workers, worker:<id>, types_seen; reads spans, lease:<ms>, schedules. Bound: the types of
--          one worker, the lengths of leases.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local worker, running, dead_ms, is_all = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'

local function alive()
  return redis.call('ZCOUNT', P .. 'workers', string.format('(%.0f', now - dead_ms), '+inf')
end

-- Whether there is nothing that somebody should see to: see rescue.lua and due_schedules.lua.
local function quiet()
  for _, span in ipairs(redis.call('SMEMBERS', P .. 'spans')) do
    local key = P .. 'lease:' .. span
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if first and (tonumber(first) <= now or tonumber(last) > now + tonumber(span)) then
      return 0
    end
  end
  local due = redis.call('ZRANGE', P .. 'schedules', 0, 0, 'WITHSCORES')[2]
  return due and tonumber(due) <= now and 0 or 1
end

local version = tonumber(redis.call('GET', P .. 'settings_version') or '0')
if not redis.call('ZSCORE', P .. 'workers', worker) then
  return { 0, version, alive(), 0 }
end
local key = P .. 'worker:' .. encode(worker)
redis.call('ZADD', P .. 'workers', now, worker)
redis.call('HSET', key, 'running', running, 'unstarted', ARGV[6])
for known in string.gmatch(redis.call('HGET', key, 'types') or '', '[^\n]+') do
  redis.call('ZADD', P .. 'types_seen', 'XX', now, known)
end
return { 1, version, alive(), is_all and quiet() or 0 }
