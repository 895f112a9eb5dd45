-- inspect_activity: read what was tallied in the last minutes.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 how many minutes
-- RETURNS  now, then per minute: when it began, its counts with a blank between them
-- TOUCHES  nothing; reads activity. Bound: 1,440 minutes.
--@include lib/clock.lua

local P, now, many = KEYS[1], now_ms(ARGV[1]), math.min(tonumber(ARGV[2]), 1440)

local names = {}
for back = many - 1, 0, -1 do
  names[#names + 1] = string.format('%.0f', now - now % 60000 - back * 60000)
end
local found = { now }
for place, counts in ipairs(redis.call('HMGET', P .. 'activity', unpack(names))) do
  if counts then
    found[#found + 1] = names[place]
    found[#found + 1] = counts
  end
end
return found
