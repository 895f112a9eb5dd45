-- inspect_tokens: read tokens by their prefixes.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 where to begin, as a bound of ZRANGE BYLEX  3 how many, at most 100
-- RETURNS  now, then per token: prefix, the token, the mark of who revoked it or ''
-- TOUCHES  nothing; reads token_ids, tokens, revoked_tokens. Bound: 100 tokens.
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local from, many = ARGV[2], math.min(tonumber(ARGV[3]), 100)

local found = { now }
local prefixes = redis.call('ZRANGE', P .. 'token_ids', from, '+', 'BYLEX', 'LIMIT', 0, many)
for _, prefix in ipairs(prefixes) do
  found[#found + 1] = prefix
  found[#found + 1] = redis.call('HGET', P .. 'tokens', prefix)
  found[#found + 1] = redis.call('HGET', P .. 'revoked_tokens', prefix) or ''
end
return found
