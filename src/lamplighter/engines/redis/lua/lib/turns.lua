-- turns: who waits where. After keys. Every verb that moves a waiting job keeps them true.
--
-- A turn is (lane, tenant): its waiting jobs that are not held, in the zset turn:<lane>:<tenant>,
-- score due, member %011x of seq .. id. The first of them is its head. A turn with jobs stands in
-- exactly one of these, and the lane in the set active:<queue>:
--   line:<lane>    awake: its head was due when it woke, and it has a place: tenant -> virtual
--                  time. Then heads:<lane> has its head, exactly: score due, member head .. tenant.
--   asleep:<lane>  its head is due later, or nobody has woken it yet: tenant -> due of its head
--   shut:<lane>    its tenant is held: tenant -> due of its head, or earlier
-- The hash waits has the number of jobs in all turns of each tenant that has any.

-- The queue and so on of a lane, by its number.
local LANE = '^([^%z]*)%z(%d+)%z([^%z]*)%z([^%z]*)%z(%d+)$'

local function read_lane(number, text)
  local queue, level, type_, requirement, band = string.match(text, LANE)
  return {
    number = number, queue = queue, level = tonumber(level), type = type_,
    requirement = requirement, band = band,
  }
end

local function lane_of(P, lane)
  return read_lane(lane, redis.call('HGET', P .. 'lane', lane))
end

-- A lane and a band are made when they are first needed, and stay.
local function make_lane(P, name, queue, level)
  local band = redis.call('HGET', P .. 'band', queue .. '\0' .. level)
  if not band then
    band = redis.call('HLEN', P .. 'band') + 1
    redis.call('HSET', P .. 'band', queue .. '\0' .. level, band)
  end
  local number = redis.call('HLEN', P .. 'lanes') + 1
  redis.call('HSET', P .. 'lanes', name, number)
  redis.call('HSET', P .. 'lane', number, name .. '\0' .. band)
  redis.call('HINCRBY', P .. 'band_lanes', band, 1)
  return number
end

-- The number of a lane; a new one is made.
local function find_lane(P, queue, level, type_, requirement)
  local name = queue .. '\0' .. level .. '\0' .. type_ .. '\0' .. requirement
  local number = redis.call('HGET', P .. 'lanes', name)
  return number and tonumber(number) or make_lane(P, name, queue, level)
end

local format, find = string.format, string.find

-- The key of a turn, from what those of its lane begin with. Most names are plain.
local function turn_key_in(prefix, tenant)
  return prefix .. (find(tenant, '[^A-Za-z0-9_.-]') and encode(tenant) or tenant)
end

local function member_of(seq, id)
  return format('%011x', seq) .. id
end

-- A job has come into a turn of this tenant, 1, or has left it, -1.
local function count_one(P, tenant, change)
  if redis.call('HINCRBY', P .. 'waits', tenant, change) <= 0 then
    redis.call('HDEL', P .. 'waits', tenant)
  end
end

-- Jobs have come into turns of these tenants, each given once, or have left them: so many each.
local function count_waiting(P, tenants, changes)
  local waits, MOST = P .. 'waits', 1000
  for first = 1, #tenants, MOST do
    local last = math.min(first + MOST - 1, #tenants)
    local before = redis.call('HMGET', waits, unpack(tenants, first, last))
    local some, none = {}, {}
    for place = first, last do
      local count = tonumber(before[place - first + 1] or '0') + changes[place]
      if count > 0 then
        some[#some + 1] = tenants[place]
        some[#some + 1] = count
      else
        none[#none + 1] = tenants[place]
      end
    end
    if #some > 0 then
      redis.call('HSET', waits, unpack(some))
    end
    if #none > 0 then
      redis.call('HDEL', waits, unpack(none))
    end
  end
end

-- Whether one job, given as due and member, goes before another.
local function goes_before(due, member, other_due, other_member)
  if due ~= other_due then
    return due < other_due
  end
  return string.sub(member, 1, 11) < string.sub(other_member, 1, 11)
end

-- Which of these tenants are held: a table with true at their places.
local function held_tenants(P, tenants)
  local held = {}
  if #tenants > 0 then
    for place, text in ipairs(redis.call('HMGET', P .. 'tenant', unpack(tenants))) do
      held[place] = text and cjson.decode(text).hold ~= nil
    end
  end
  return held
end

-- Put turns in line that have not been there: never behind the clock of their band.
local function wake_up(P, lane, band, tenants, dues, members)
  if #tenants == 0 then
    return
  end
  local clock = tonumber(redis.call('HGET', P .. 'bands', band) or '0')
  local shares = redis.call('ZMSCORE', P .. 'share:' .. band, unpack(tenants))
  local line, heads = {}, {}
  for place, tenant in ipairs(tenants) do
    line[2 * place - 1] = math.max(tonumber(shares[place] or '0'), clock)
    line[2 * place] = tenant
    heads[2 * place - 1] = dues[place]
    heads[2 * place] = members[place] .. tenant
  end
  redis.call('ZADD', P .. 'line:' .. lane, unpack(line))
  redis.call('ZADD', P .. 'heads:' .. lane, unpack(heads))
end

-- Awake turns to which jobs have come: a job that goes before the head is the head now. That is
-- so only after the clock went back, and for old jobs that come back.
local function rehead(P, lane, tenants, dues, members)
  local heads = P .. 'heads:' .. lane
  local last = redis.call('ZRANGE', heads, 0, 0, 'REV', 'WITHSCORES')
  for place, tenant in ipairs(tenants) do
    -- Most come behind all heads of the lane.
    if goes_before(dues[place], members[place], tonumber(last[2]), last[1]) then
      -- At most 500 have come: the old head is among as many behind the first.
      local first = redis.call('ZRANGE', turn_key(P, lane, tenant), 0, 500)
      if first[1] == members[place] then
        for n, member in ipairs(first) do
          first[n] = member .. tenant
        end
        redis.call('ZREM', heads, unpack(first))
        redis.call('ZADD', heads, dues[place], first[1])
      end
    end
  end
end

-- Turns out of line to which jobs have come: they wake if their head is a newcomer that is due.
local function stir(P, lane, band, tenants, dues, members, now)
  local asleep = P .. 'asleep:' .. lane
  local known = redis.call('ZMSCORE', asleep, unpack(tenants))
  local woken, woken_dues, woken_members, rest, later = {}, {}, {}, {}, {}
  for place, tenant in ipairs(tenants) do
    local due, member = dues[place], members[place]
    local before = known[place] and tonumber(known[place])
    local first = not before or due < before
    if due == before then
      first = redis.call('ZRANGE', turn_key(P, lane, tenant), 0, 0)[1] == member
    end
    if first and due <= now then
      local n = #woken + 1
      woken[n], woken_dues[n], woken_members[n] = tenant, due, member
      if before then
        rest[#rest + 1] = tenant
      end
    elseif first then
      later[#later + 1] = due
      later[#later + 1] = tenant
    end
  end
  if #rest > 0 then
    redis.call('ZREM', asleep, unpack(rest))
  end
  if #later > 0 then
    redis.call('ZADD', asleep, unpack(later))
  end
  wake_up(P, lane, band, woken, woken_dues, woken_members)
end

-- Tell turns of one lane, at most 500, each given once, of the jobs that have come into them; these
-- stand in the zsets of the turns already. `dues` and `members` are those of the first of them.
local function stand(P, lane, tenants, dues, members, now)
  local places = redis.call('ZMSCORE', P .. 'line:' .. lane, unpack(tenants))
  local awake, others = { {}, {}, {} }, { {}, {}, {} }
  for place, tenant in ipairs(tenants) do
    local list = places[place] and awake or others
    local n = #list[1] + 1
    list[1][n], list[2][n], list[3][n] = tenant, dues[place], members[place]
  end
  if #awake[1] > 0 then
    rehead(P, lane, awake[1], awake[2], awake[3])
  end
  if #others[1] == 0 then
    return
  end
  local info = lane_of(P, lane)
  redis.call('SADD', active_key(P, info.queue), lane)
  local free = { {}, {}, {} }
  for place, held in ipairs(held_tenants(P, others[1])) do
    if held then
      redis.call('ZADD', P .. 'shut:' .. lane, 'LT', others[2][place], others[1][place])
    else
      local n = #free[1] + 1
      free[1][n], free[2][n], free[3][n] = others[1][place], others[2][place], others[3][place]
    end
  end
  if #free[1] > 0 then
    stir(P, lane, info.band, free[1], free[2], free[3], now)
  end
end

-- A job waits in its turn from now on. For jobs that are not held. If it stands there already and
-- falls due earlier than it did, this alone moves it: leaving first could cost its turn the place.
local function enter(P, lane, tenant, due, seq, id, now)
  local member = member_of(seq, id)
  if redis.call('ZADD', turn_key(P, lane, tenant), due, member) == 1 then
    count_one(P, tenant, 1)
  end
  stand(P, lane, { tenant }, { due }, { member }, now)
end

-- A lane without turns is not active any more.
local function tidy_lane(P, lane, queue)
  local line, asleep, shut = P .. 'line:' .. lane, P .. 'asleep:' .. lane, P .. 'shut:' .. lane
  if redis.call('EXISTS', line, asleep, shut) == 0 then
    redis.call('SREM', active_key(P, queue), lane)
  end
end

-- The last job has left a turn.
local function end_turn(P, lane, tenant, member)
  redis.call('ZREM', P .. 'line:' .. lane, tenant)
  redis.call('ZREM', P .. 'heads:' .. lane, member .. tenant)
  redis.call('ZREM', P .. 'asleep:' .. lane, tenant)
  redis.call('ZREM', P .. 'shut:' .. lane, tenant)
  tidy_lane(P, lane, lane_of(P, lane).queue)
end

-- A job leaves its turn, where it was due at `due`. An awake turn whose head is due later falls
-- asleep and loses its place; an empty one is gone.
local function leave(P, lane, tenant, due, seq, id, now)
  local key, member = turn_key(P, lane, tenant), member_of(seq, id)
  if redis.call('ZREM', key, member) == 0 then
    return
  end
  count_one(P, tenant, -1)
  local head_ = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if not head_[1] then
    end_turn(P, lane, tenant, member)
    return
  end
  local head_due = tonumber(head_[2])
  local was_first = goes_before(due, member, head_due, head_[1])
  if redis.call('ZSCORE', P .. 'line:' .. lane, tenant) then
    local heads = P .. 'heads:' .. lane
    if head_due > now then
      redis.call('ZREM', P .. 'line:' .. lane, tenant)
      redis.call('ZREM', heads, (was_first and member or head_[1]) .. tenant)
      redis.call('ZADD', P .. 'asleep:' .. lane, head_due, tenant)
    elseif was_first then
      redis.call('ZREM', heads, member .. tenant)
      redis.call('ZADD', heads, head_due, head_[1] .. tenant)
    end
  elseif was_first then
    redis.call('ZADD', P .. 'asleep:' .. lane, 'XX', head_due, tenant)
  end
end

-- Take a turn out of line or sleep because its tenant is held. Nothing happens where there is none.
local function shut_turn(P, lane, tenant)
  local first = redis.call('ZRANGE', turn_key(P, lane, tenant), 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZREM', P .. 'line:' .. lane, tenant)
    redis.call('ZREM', P .. 'heads:' .. lane, first[1] .. tenant)
    redis.call('ZREM', P .. 'asleep:' .. lane, tenant)
    redis.call('ZADD', P .. 'shut:' .. lane, first[2], tenant)
  end
end

-- Let a turn go on whose tenant is held no more: in line at the clock if its head is due, else
-- asleep. Nothing happens to a turn that was not shut.
local function open_turn(P, lane, tenant, now)
  if redis.call('ZREM', P .. 'shut:' .. lane, tenant) == 0 then
    return
  end
  local first = redis.call('ZRANGE', turn_key(P, lane, tenant), 0, 0, 'WITHSCORES')
  local due = tonumber(first[2])
  if due <= now then
    wake_up(P, lane, lane_of(P, lane).band, { tenant }, { due }, { first[1] })
  else
    redis.call('ZADD', P .. 'asleep:' .. lane, due, tenant)
  end
end
