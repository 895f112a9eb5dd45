-- put_token: store a token, unless its prefix is taken.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 prefix  3 digest  4 how long it is good for in ms, or ''
--       5 the rest as JSON, without digest and times
-- RETURNS  done | already | conflict
-- TOUCHES  tokens, token_ids, token_ends. Bound: one token.
--@include lib/clock.lua
--@include lib/mark.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local prefix, digest, lifetime, rest = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local known = redis.call('HGET', P .. 'tokens', prefix)
if known then
  return cjson.decode(known).digest == digest and 'already' or 'conflict'
end
local text = string.sub(rest, 1, -2) .. ', "digest": "' .. digest .. '"'
if lifetime then
  text = text .. ', "expires": ' .. string.format('%.0f', now + lifetime)
  redis.call('ZADD', P .. 'token_ends', now + lifetime, prefix)
end
redis.call('HSET', P .. 'tokens', prefix, mark_at(text .. '}', now))
redis.call('ZADD', P .. 'token_ids', 0, prefix)
return 'done'
