-- inspect_standing: read what waits in a shard as a whole.
-- KEYS  1 shard
-- ARGV  1 clock
-- RETURNS  now, how many waiting jobs are held, when the first schedule is to be looked at or '',
--          and if a job is due: since when, its id, its lane's name
-- TOUCHES  nothing; reads hold, run, schedules, lane, heads:<lane>, asleep:<lane>,
--          turn:<lane>:<tenant>. Bound: all lanes, and 1,000 jobs that run or are held.
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local FEW = 1000

-- A hold of a running job counts when the job waits again; where very many run and are held it is
-- not looked up.
local function held()
  local holds, runs = redis.call('HLEN', P .. 'hold'), redis.call('HLEN', P .. 'run')
  local few, many = 'run', 'hold'
  if holds < runs then
    few, many = 'hold', 'run'
  end
  if holds == 0 or runs == 0 or math.min(holds, runs) > FEW then
    return holds
  end
  for _, found in ipairs(redis.call('HMGET', P .. many, unpack(redis.call('HKEYS', P .. few)))) do
    holds = holds - (found and 1 or 0)
  end
  return holds
end

-- A member of a turn is a sequence number and an id; behind that, heads have their tenant.
local function id_of(member)
  return string.sub(member, 12, 37)
end

local schedule = redis.call('ZRANGE', P .. 'schedules', 0, 0, 'WITHSCORES')[2]
local found, oldest = { now, held(), schedule or '' }, now + 1
local lanes = redis.call('HGETALL', P .. 'lane')
for place = 1, #lanes, 2 do
  local lane = lanes[place]
  local awake = redis.call('ZRANGE', P .. 'heads:' .. lane, 0, 0, 'WITHSCORES')
  local asleep = redis.call('ZRANGE', P .. 'asleep:' .. lane, 0, 0, 'WITHSCORES')
  if awake[2] and tonumber(awake[2]) < oldest then
    oldest = tonumber(awake[2])
    found[4], found[5], found[6] = oldest, id_of(awake[1]), lanes[place + 1]
  end
  if asleep[2] and tonumber(asleep[2]) < oldest then
    local member = redis.call('ZRANGE', turn_key(P, lane, asleep[1]), 0, 0)[1]
    oldest = tonumber(asleep[2])
    found[4], found[5], found[6] = oldest, id_of(member), lanes[place + 1]
  end
end
return found
