-- inspect_token: read one token.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 prefix
-- RETURNS  now, the token or '', the mark of who revoked it or ''
-- TOUCHES  nothing; reads tokens, revoked_tokens. Bound: one token.
--@include lib/clock.lua

local P, now, prefix = KEYS[1], now_ms(ARGV[1]), ARGV[2]

return {
  now,
  redis.call('HGET', P .. 'tokens', prefix) or '',
  redis.call('HGET', P .. 'revoked_tokens', prefix) or '',
}
