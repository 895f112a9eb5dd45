-- open: look whether there is a store, and make one if asked.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  2 'look' | 'make'  3 version  4 shards
-- RETURNS  {'ours', version, shards} | {'made', version, shards} | {'none'} | {'foreign', key}
-- TOUCHES  meta; looks at a few keys that every store in use has
--@include lib/clock.lua

local P = KEYS[1]
local given, wish, version, shards = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local MARK = 'lamplighter'
local COMMON = { 'seq', 'lanes', 'lane', 'run', 'workers', 'queue', 'tenant', 'type' }

local meta = P .. 'meta'
local kind = redis.call('TYPE', meta).ok

if kind == 'none' then
  for _, name in ipairs(COMMON) do
    if redis.call('EXISTS', P .. name) == 1 then
      return { 'foreign', P .. name }
    end
  end
  if wish ~= 'make' then
    return { 'none' }
  end
  local made = string.format('%.0f', now_ms(given))
  redis.call('HSET', meta, 'program', MARK, 'version', version, 'shards', shards, 'made', made)
  return { 'made', version, shards }
end

if kind ~= 'hash' or redis.call('HGET', meta, 'program') ~= MARK then
  return { 'foreign', meta }
end
local found = redis.call('HMGET', meta, 'version', 'shards')
return { 'ours', found[1] or '', found[2] or '' }
