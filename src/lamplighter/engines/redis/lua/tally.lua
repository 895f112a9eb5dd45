-- tally: add the counts of a worker to the present minute, unless its number was written before.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 worker  3 number of its tally  4 ms after which a minute is forgotten  5… counts
-- RETURNS  1 when they were added, 0 when they were there already
-- TOUCHES  activity, tallies, tallied. Bound: 100 minutes and 100 workers that are forgotten, when
--          a minute begins; it looks at all minutes then, of which there are those of a day.
--@flags allow-oom
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local worker, number, kept_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local FIRST, MOST = 5, 100
local minutes, numbers, seen = P .. 'activity', P .. 'tallies', P .. 'tallied'

local function text_of(time)
  return string.format('%.0f', time)
end

-- Minutes are kept as counts with a blank between them.
local function added(before)
  local counts, place = {}, FIRST
  for count in string.gmatch(before, '%d+') do
    counts[#counts + 1] = text_of(tonumber(count) + tonumber(ARGV[place] or '0'))
    place = place + 1
  end
  for rest = place, #ARGV do
    counts[#counts + 1] = ARGV[rest]
  end
  return table.concat(counts, ' ')
end

local function forget(before)
  local old = {}
  for _, minute in ipairs(redis.call('HKEYS', minutes)) do
    if tonumber(minute) < before and #old < MOST then
      old[#old + 1] = minute
    end
  end
  if #old > 0 then
    redis.call('HDEL', minutes, unpack(old))
  end
  local gone = redis.call('ZRANGE', seen, '-inf', '(' .. text_of(before), 'BYSCORE', 'LIMIT', 0,
    MOST)
  if #gone > 0 then
    redis.call('HDEL', numbers, unpack(gone))
    redis.call('ZREM', seen, unpack(gone))
  end
end

if number <= tonumber(redis.call('HGET', numbers, worker) or '-1') then
  return 0
end
redis.call('HSET', numbers, worker, text_of(number))
redis.call('ZADD', seen, text_of(now), worker)
local minute = now - now % 60000
local before = redis.call('HGET', minutes, text_of(minute))
if not before then
  forget(minute - kept_ms)
end
redis.call('HSET', minutes, text_of(minute), added(before or ''))
return 1
