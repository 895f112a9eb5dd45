-- prune_access: remove old audit entries, tokens that have long ended, and spent marks.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 how long they are kept in ms  3 how many entries  4 how many tokens
--       5 how many marks, at most
-- RETURNS  how many entries, tokens and marks are gone
-- TOUCHES  audit, audit_log, audit_of:<tenant>, tokens, token_ids, revoked_tokens, token_ends,
--          spent, spent_ends. Bound: 100 of each.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local before = now - tonumber(ARGV[2])
local entries, tokens = math.min(tonumber(ARGV[3]), 100), math.min(tonumber(ARGV[4]), 100)
local marks = math.min(tonumber(ARGV[5]), 100)

-- Entries stand in the order in which they were written: the first that is young ends the search.
local function prune_entries()
  local gone = 0
  for _, id in ipairs(redis.call('ZRANGE', P .. 'audit_log', 0, entries - 1)) do
    local entry = cjson.decode(redis.call('HGET', P .. 'audit', id))
    if entry.at >= before then
      break
    end
    redis.call('HDEL', P .. 'audit', id)
    redis.call('ZREM', P .. 'audit_log', id)
    if entry.tenant ~= cjson.null then
      redis.call('ZREM', P .. 'audit_of:' .. encode(entry.tenant), id)
    end
    gone = gone + 1
  end
  return gone
end

-- Forget what has ended before then: what is in `ends`, a zset, in other zsets and in hashes.
local function prune_ended(ends, before_then, many, zsets, hashes)
  local over = redis.call('ZRANGE', P .. ends, '-inf', string.format('(%.0f', before_then),
    'BYSCORE', 'LIMIT', 0, many)
  for _, one in ipairs(over) do
    for _, hash in ipairs(hashes) do
      redis.call('HDEL', P .. hash, one)
    end
    for _, zset in ipairs(zsets) do
      redis.call('ZREM', P .. zset, one)
    end
  end
  return #over
end

return {
  entries > 0 and prune_entries() or 0,
  prune_ended('token_ends', before, tokens, { 'token_ids', 'token_ends' },
    { 'tokens', 'revoked_tokens' }),
  prune_ended('spent_ends', now, marks, { 'spent_ends' }, { 'spent' }),
}
