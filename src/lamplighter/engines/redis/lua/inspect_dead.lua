-- inspect_dead: look for dead letters that a filter means, those that died last first.
-- KEYS  1 shard
-- ARGV  1 clock  2, 3 when it died and id of the last that was looked at  4 how many are wanted
--       5 filter
-- RETURNS  when it died and id of the last job looked at, 1 when there may be more behind it, how
--          many were looked at, then per job found: id, when it died
-- TOUCHES  nothing; reads ended:dead, job, lane. Bound: 500 jobs.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/filter.lua
--@include lib/behind.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local finished, id = tonumber(ARGV[2]), ARGV[3]
local wanted, filter = tonumber(ARGV[4]), read_filter(ARGV[5])
local JOBS = 500

local dead = P .. 'ended:dead'
local rank = rank_behind(dead, finished, id)
local given = redis.call('ZRANGE', dead, rank, rank + JOBS - 1, 'REV', 'WITHSCORES')
local found, number, looked = {}, 0, 0
for place = 1, #given, 2 do
  if number == wanted then
    break
  end
  id, finished, looked = given[place], tonumber(given[place + 1]), looked + 1
  local value = brief(P, id)
  if value and fits(P, filter, id, value, now) then
    number = number + 1
    found[#found + 1] = id
    found[#found + 1] = finished
  end
end
local more = rank + looked < redis.call('ZCARD', dead) and 1 or 0
return { finished, id, more, looked, unpack(found) }
