-- withdraw: a claim that waits at the server waits no longer.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  2 ear  3 nonce of the claim, if it is to take nothing; '' lets it be made now
-- RETURNS  1
-- TOUCHES  requests, wake:<ear>
--@flags allow-oom
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local ear, nonce = ARGV[2], ARGV[3]
local WAKE_MS, NO_NEWS = 60000, '0 -'

-- One that is known takes nothing. Then the call in front of it is let through.
if nonce ~= '' then
  redis.call('ZADD', P .. 'requests', 'NX', now, nonce)
end
redis.call('RPUSH', P .. 'wake:' .. ear, NO_NEWS)
redis.call('PEXPIRE', P .. 'wake:' .. ear, WAKE_MS)
return 1
