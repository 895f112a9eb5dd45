-- due_schedules: hand out schedules that are due, those first that have been due longest.
-- KEYS  1 shard
-- ARGV  1 clock  2 how many  3 ms for which they are not handed out again, or '' only to look
--       4 1 for the newest first
-- RETURNS  now, ms until the next is due or '' for never, list of when each has fallen due; then, if
--          they are handed out, lists of their names, values and specs
-- TOUCHES  schedules; reads schedule:<name>, specs. Bound: 100 schedules.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/schedule.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local limit, lease_ms, newest_first = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local index = P .. 'schedules'

local function find_due()
  if newest_first then
    return redis.call('ZRANGE', index, now, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES')
  end
  return redis.call('ZRANGE', index, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
end

local found, dues, names, keys, again = find_due(), {}, {}, {}, {}
for n = 1, #found / 2 do
  local name = found[2 * n - 1]
  names[n], keys[n], dues[n] = name, schedule_key(P, name), tonumber(found[2 * n])
  again[2 * n - 1], again[2 * n] = lease_ms and now + lease_ms, name
end
local values, specs = {}, {}
if lease_ms and #names > 0 then
  values, specs = redis.call('MGET', unpack(keys)), redis.call('HMGET', P .. 'specs', unpack(names))
  redis.call('ZADD', index, unpack(again))
end
local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
local poll = first and math.max(0, tonumber(first) - now) or ''
return { now, poll, dues, lease_ms and names or {}, values, specs }
