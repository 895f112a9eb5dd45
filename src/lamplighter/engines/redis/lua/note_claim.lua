-- note_claim: remember a claim that other shards have answered, so that its repeat is known here.
-- KEYS  1 shard that the claim asks first
-- ARGV  1 clock  2 nonce
-- RETURNS  nothing
-- TOUCHES  requests. Bound: one request, and 4 that are forgotten.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/requests.lua

local P, now, nonce = KEYS[1], now_ms(ARGV[1]), ARGV[2]

note_request(P, nonce, now)
return {}
