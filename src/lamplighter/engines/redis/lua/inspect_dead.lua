-- inspect_dead: look for dead letters that a filter means, those that died last first, or count them
-- by type and fingerprint.
-- KEYS  1 shard
-- ARGV  1 clock  2, 3 when it died and id of the last that was looked at  4 how many are wanted, ''
--       to count  5 filter  6 how many to look at, at most, if they are counted
-- RETURNS  when it died and id of the last job looked at, 1 when there may be more behind it, how
--          many were looked at, then per job found: id, when it died; or per group: type, fingerprint,
--          count, when the newest died, its id
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
local JOBS = math.min(500, tonumber(ARGV[6] or 500))
local found, groups, number, looked = {}, {}, 0, 0

local function count(value)
  local of = lane_of(P, job_lane(value)).type
  local print_ = fingerprint_of(part_of(P, id, value, 'error')) or ''
  local group = groups[of .. '\0' .. print_]
  if group then
    group[3] = group[3] + 1
  else
    group = { of, print_, 1, finished, id }
    groups[of .. '\0' .. print_] = group
    found[#found + 1] = group
  end
end

local dead = P .. 'ended:dead'
local rank = rank_behind(dead, finished, id)
local given = redis.call('ZRANGE', dead, rank, rank + JOBS - 1, 'REV', 'WITHSCORES')
for place = 1, #given, 2 do
  if number == wanted then
    break
  end
  id, finished, looked = given[place], tonumber(given[place + 1]), looked + 1
  local value = brief(P, id)
  if value and fits(P, filter, id, value, now) then
    number = number + 1
    if wanted then
      found[#found + 1] = id
      found[#found + 1] = finished
    else
      count(value)
    end
  end
end
local more = rank + looked < redis.call('ZCARD', dead) and 1 or 0
return { finished, id, more, looked, unpack(found) }
