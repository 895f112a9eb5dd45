-- revoke_token: end a token; the first mark stays.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 prefix  3 mark without its time
-- RETURNS  done | already | unknown
-- TOUCHES  revoked_tokens, token_ends. Bound: one token.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/mark.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local prefix, mark = ARGV[2], ARGV[3]

if redis.call('HEXISTS', P .. 'tokens', prefix) == 0 then
  return 'unknown'
end
if redis.call('HSETNX', P .. 'revoked_tokens', prefix, mark_at(mark, now)) == 0 then
  return 'already'
end
local ends = redis.call('ZSCORE', P .. 'token_ends', prefix)
if not ends or tonumber(ends) > now then
  redis.call('ZADD', P .. 'token_ends', now, prefix)
end
return 'done'
