-- turns: lanes, and who waits where in them. After keys. moves.lua keeps it true.
--
-- A turn is (lane, tenant): its waiting jobs that are not held, in the zset turn:<lane>:<tenant>,
-- score due, member %011x of seq .. id. The first of them is its head. A turn with jobs stands in
-- exactly one of these, and the lane in the set active:<queue>:
--   line:<lane>    awake: its head was due when it woke, and it has a place: tenant -> virtual
--                  time. Then heads:<lane> has its head, exactly: score due, member head .. tenant.
--   asleep:<lane>  its head is due later, or nobody has woken it yet: tenant -> due of its head
--   shut:<lane>    its tenant is held: tenant -> due of its head, or earlier
-- The hash waits has the number of jobs in all turns of each tenant that has any.

-- A lane by its number, from what `lane` has of it.
local function read_lane(number, text)
  local queue, level, type_, requirement, band =
    string.match(text, '^([^%z]*)%z(%d+)%z([^%z]*)%z([^%z]*)%z(%d+)$')
  return {
    number = number, name = text, queue = queue, level = tonumber(level), type = type_,
    requirement = requirement, band = band,
  }
end

local function lane_of(P, lane)
  return read_lane(lane, redis.call('HGET', P .. 'lane', lane))
end

-- A lane and a band are made when they are first needed, and stay.
local function make_lane(P, name)
  local band_name = string.match(name, '^[^%z]*%z%d+')
  local band = redis.call('HGET', P .. 'band', band_name)
  if not band then
    band = redis.call('HLEN', P .. 'band') + 1
    redis.call('HSET', P .. 'band', band_name, band)
  end
  local number = redis.call('HLEN', P .. 'lanes') + 1
  redis.call('HSET', P .. 'lanes', name, number)
  redis.call('HSET', P .. 'lane', number, name .. '\0' .. band)
  redis.call('HINCRBY', P .. 'band_lanes', band, 1)
  return number
end

-- The number of a lane; a new one is made.
local function find_lane(P, queue, level, type_, requirement)
  local name = table.concat({ queue, level, type_, requirement }, '\0')
  local number = redis.call('HGET', P .. 'lanes', name)
  return number and tonumber(number) or make_lane(P, name)
end

-- Whether the settings of a queue, type or tenant, false if there are none, hold it.
local function is_held_by(settings)
  return settings and cjson.decode(settings).hold ~= nil
end

local function member_of(seq, id)
  return string.format('%011x', seq) .. id
end

-- Whether one job, given as due and member, goes before another.
local function goes_before(due, member, other_due, other_member)
  return due < other_due or due == other_due and member < other_member
end

-- Run a command with as many arguments as there are; nothing where there are none.
local function send(command, key, list)
  for first = 1, #list, 2000 do
    redis.call(command, key, unpack(list, first, math.min(first + 1999, #list)))
  end
end

-- So many jobs have come into turns of each of these tenants, or have left them: at most 1,000.
local function count_waiting(P, changes)
  local tenants, some, none = {}, {}, {}
  for tenant in pairs(changes) do
    tenants[#tenants + 1] = tenant
  end
  local counts = #tenants > 0 and redis.call('HMGET', P .. 'waits', unpack(tenants)) or {}
  for place, before in ipairs(counts) do
    local count = tonumber(before or '0') + changes[tenants[place]]
    if count > 0 then
      some[#some + 1] = tenants[place]
      some[#some + 1] = count
    else
      none[#none + 1] = tenants[place]
    end
  end
  send('HSET', P .. 'waits', some)
  send('HDEL', P .. 'waits', none)
end

local function tenants_of(turns)
  local tenants = {}
  for place, turn in ipairs(turns) do
    tenants[place] = turn.tenant
  end
  return tenants
end

-- Put turns of a lane in line that have not been there: never behind the clock of their band.
local function wake_turns(P, lane, band, turns)
  if #turns == 0 then
    return
  end
  local line, heads = {}, {}
  local clock = tonumber(redis.call('HGET', P .. 'bands', band) or '0')
  local shares = redis.call('ZMSCORE', P .. 'share:' .. band, unpack(tenants_of(turns)))
  for place, turn in ipairs(turns) do
    line[2 * place - 1] = math.max(tonumber(shares[place] or '0'), clock)
    line[2 * place] = turn.tenant
    heads[2 * place - 1] = turn.due
    heads[2 * place] = turn.member .. turn.tenant
  end
  redis.call('ZADD', P .. 'line:' .. lane, unpack(line))
  redis.call('ZADD', P .. 'heads:' .. lane, unpack(heads))
end

-- A lane without turns is not active any more.
local function tidy_lane(P, lane, queue)
  if redis.call('EXISTS', P .. 'line:' .. lane, P .. 'asleep:' .. lane, P .. 'shut:' .. lane) == 0 then
    redis.call('SREM', active_key(P, queue), lane)
  end
end
