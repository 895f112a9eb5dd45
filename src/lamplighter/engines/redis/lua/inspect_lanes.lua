-- inspect_lanes: read lanes with the number of their turns.
-- KEYS  1 shard
-- ARGV  1 clock  2 number of the first lane
-- RETURNS  now, then per lane: number, name, when the head that waits longest is due or '', turns
--          that are awake, asleep, shut; none: that was all
-- TOUCHES  nothing; reads lane, line:<lane>, heads:<lane>, asleep:<lane>, shut:<lane>.
--          Bound: 500 lanes.
--@include lib/clock.lua

local P, now, first = KEYS[1], now_ms(ARGV[1]), tonumber(ARGV[2])
local LANES = 500

-- Heads of held tenants do not count.
local function oldest_due(lane)
  local awake = redis.call('ZRANGE', P .. 'heads:' .. lane, 0, 0, 'WITHSCORES')[2]
  local asleep = redis.call('ZRANGE', P .. 'asleep:' .. lane, 0, 0, 'WITHSCORES')[2]
  if awake and asleep then
    return math.min(tonumber(awake), tonumber(asleep))
  end
  return tonumber(awake or asleep or '')
end

local numbers = {}
for lane = first, first + LANES - 1 do
  numbers[#numbers + 1] = lane
end
local found = { now }
for place, name in ipairs(redis.call('HMGET', P .. 'lane', unpack(numbers))) do
  if name then
    local lane = numbers[place]
    found[#found + 1] = {
      lane,
      name,
      oldest_due(lane) or '',
      redis.call('ZCARD', P .. 'line:' .. lane),
      redis.call('ZCARD', P .. 'asleep:' .. lane),
      redis.call('ZCARD', P .. 'shut:' .. lane),
    }
  end
end
return found
