-- note_claim: remember a claim that other shards have answered, so that its repeat is known here.
-- KEYS  1 shard that the claim asks first
-- ARGV  1 clock  2 nonce
-- RETURNS  nothing
-- TOUCHES  requests. Bound: one request, and 4 that are forgotten.
--@flags allow-oom
--@include lib/clock.lua

local P, now, nonce = KEYS[1], now_ms(ARGV[1]), ARGV[2]
local HOUR_MS = 3600000

local requests = P .. 'requests'
local old = redis.call('ZRANGE', requests, '-inf', now - HOUR_MS, 'BYSCORE', 'LIMIT', 0, 4)
if #old > 0 then
  redis.call('ZREM', requests, unpack(old))
end
redis.call('ZADD', requests, now, nonce)
return {}
