-- open: look whether there is a store, and make one if asked.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  2 'look' | 'make'  3 version  4 shards
-- RETURNS  {'ours' | 'made', version, shards, mark} | {'none'} | {'foreign', key} |
--          {'torn', key}: one of the shards has lost its mark
-- TOUCHES  meta, mark:<mark> of every shard; looks at a few keys that every store in use has
--@unguarded
--@include lib/clock.lua

local P = KEYS[1]
local given, wish, version, shards = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local PROGRAM = 'lamplighter'
local COMMON = { 'seq', 'lanes', 'lane', 'run', 'workers', 'queue', 'tenant', 'type' }

local meta = P .. 'meta'
local kind = redis.call('TYPE', meta).ok

local function mark_keys(mark, count)
  local keys = {}
  for shard = 0, count - 1 do
    keys[shard + 1] = string.gsub(P, '0}:$', shard .. '}:') .. 'mark:' .. mark
  end
  return keys
end

-- By the server's own clock, whatever time tests say it is: no two stores share a mark.
local function new_mark()
  local time = redis.call('TIME')
  return string.format('%x.%x', tonumber(time[1]), tonumber(time[2]))
end

if kind == 'none' then
  for _, name in ipairs(COMMON) do
    if redis.call('EXISTS', P .. name) == 1 then
      return { 'foreign', P .. name }
    end
  end
  if wish ~= 'make' then
    return { 'none' }
  end
  local made, mark = string.format('%.0f', now_ms(given)), new_mark()
  redis.call(
    'HSET', meta, 'program', PROGRAM, 'version', version, 'shards', shards, 'made', made,
    'mark', mark
  )
  for _, key in ipairs(mark_keys(mark, tonumber(shards))) do
    redis.call('SET', key, made)
  end
  return { 'made', version, shards, mark }
end

if kind ~= 'hash' or redis.call('HGET', meta, 'program') ~= PROGRAM then
  return { 'foreign', meta }
end
local found = redis.call('HMGET', meta, 'version', 'shards', 'mark')
local mark = found[3] or ''
for _, key in ipairs(mark_keys(mark, tonumber(found[2]) or 0)) do
  if mark ~= '' and redis.call('EXISTS', key) == 0 then
    return { 'torn', key }
  end
end
return { 'ours', found[1] or '', found[2] or '', mark }
