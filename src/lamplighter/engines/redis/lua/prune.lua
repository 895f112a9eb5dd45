-- prune: remove what is past its retention, one bounded step.
-- KEYS  1 shard
-- ARGV  1 clock  2 ms that finished jobs are kept  3 how many of them are kept, or ''  4 how many
--       of the oldest go whatever their age, where 3 is ''  5 ms that dead ones are kept  6 ms that
--       keys are kept  7 age below which nothing goes  8 how many of each kind may go
-- RETURNS  jobs, keys, others, 1 when there is more
-- TOUCHES  all that belongs to removed jobs, page:<n>, gone, removed, oldest_page, key:…,
--          keys, requests, share:<band>, workers, worker:<id>, types, types_seen, and `prune`:
--          where to go on.
--          Bound: 100 of each kind, 1,000 pieces of logs, 16 pages of ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/removal.lua
--@include lib/pages.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local finished_ms, kept, surplus = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local dead_ms, key_ms, floor_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local limit = math.min(tonumber(ARGV[8]), 100)
local FINISHED = { 'succeeded', 'cancelled', 'expired' }
local PIECES = 1000
local LOOKS = 500
local HOUR, DAY = 3600000, 86400000

local young = now - floor_ms
local pages, pieces, full = {}, 0, false

local function text_of(time)
  return string.format('%.0f', time)
end

-- The oldest members of a zset below a score, as {member, score}.
local function oldest(key, before, many, found)
  if many > 0 then
    local given = redis.call('ZRANGE', key, '-inf', '(' .. text_of(before), 'BYSCORE',
      'LIMIT', 0, many, 'WITHSCORES')
    for place = 1, #given, 2 do
      found[#found + 1] = { given[place], tonumber(given[place + 1]) }
    end
  end
  return found
end

local function oldest_finished(before, many)
  local found = {}
  for _, state in ipairs(FINISHED) do
    oldest(P .. 'ended:' .. state, before, many, found)
  end
  table.sort(found, function(one, other)
    return one[2] < other[2] or one[2] == other[2] and one[1] < other[1]
  end)
  return found
end

-- An end without a job, which no script leaves, must not stand in the way of all others.
local function forget(id)
  for _, state in pairs(STATES) do
    redis.call('ZREM', P .. 'ended:' .. state, id)
  end
end

-- Remove up to `many` of these jobs, until the logs of a step are full; gives how many.
local function remove(jobs, many)
  local removed = 0
  for place = 1, math.min(many, #jobs) do
    if pieces >= PIECES then
      full = true
      break
    end
    local id = jobs[place][1]
    pieces = pieces + redis.call('HLEN', P .. 'log:' .. id)
    local value = brief(P, id)
    if value then
      remove_job(P, id, value, pages)
    else
      forget(id)
    end
    removed = removed + 1
  end
  return removed
end

-- How many of the oldest finished jobs are too many, after `gone` of them went for their age.
local function too_many(gone)
  if not kept then
    return surplus - gone
  end
  local count = 0
  for _, state in ipairs(FINISHED) do
    count = count + redis.call('ZCARD', P .. 'ended:' .. state)
  end
  return count - kept
end

local function prune_jobs()
  local removed = remove(oldest_finished(math.min(young, now - finished_ms), limit), limit)
  local many = math.min(limit - removed, too_many(removed))
  local dead = oldest(P .. 'ended:dead', math.min(young, now - dead_ms), limit - removed, {})
  removed = removed + remove(dead, limit - removed)
  many = math.min(many, limit - removed)
  if many > 0 and not full then
    removed = removed + remove(oldest_finished(young, many), many)
  end
  note_removed(P, pages)
  return removed
end

-- Keys older than this whose jobs are gone. Those whose jobs are still there are many, perhaps:
-- each step looks at some, and the next goes on behind them.
local function prune_keys(before)
  local from = redis.call('HGET', P .. 'prune', 'keys') or '-inf'
  local looked = redis.call('ZRANGE', P .. 'keys', from, '(' .. text_of(before), 'BYSCORE',
    'LIMIT', 0, LOOKS, 'WITHSCORES')
  local removed = 0
  for place = 1, #looked, 2 do
    local key = P .. 'key:' .. looked[place]
    local id = string.sub(redis.call('GET', key) or '', 9, 34)
    if removed < limit and redis.call('EXISTS', job_key(P, id)) == 0 then
      redis.call('DEL', key)
      redis.call('ZREM', P .. 'keys', looked[place])
      removed = removed + 1
    end
  end
  if #looked == 2 * LOOKS and removed < limit then
    -- Of more keys of one millisecond than a step looks at, the others are left for another time.
    local last = looked[#looked]
    redis.call('HSET', P .. 'prune', 'keys', last == looked[2] and '(' .. last or last)
  elseif removed < limit then
    redis.call('HDEL', P .. 'prune', 'keys')
  end
  return removed
end

local function prune_requests(before)
  local old = redis.call('ZCOUNT', P .. 'requests', '-inf', '(' .. text_of(before))
  local many = math.min(limit, old)
  if many > 0 then
    redis.call('ZREMRANGEBYRANK', P .. 'requests', 0, many - 1)
  end
  return many
end

-- The lanes of a band that have a turn.
local function lanes_of(queue, band)
  local found = {}
  for _, number in ipairs(redis.call('SMEMBERS', active_key(P, queue))) do
    if lane_of(P, number).band == band then
      found[#found + 1] = number
    end
  end
  return found
end

-- A share at or below the clock says nothing, unless its tenant stands in line: then its place may
-- be older than its share. Where many do, each step looks at others.
local function prune_share(queue, band, many)
  local share = P .. 'share:' .. band
  local behind = redis.call('ZCOUNT', share, '-inf', redis.call('HGET', P .. 'bands', band) or '0')
  if behind == 0 then
    return 0
  end
  local from = now % math.max(1, behind - many + 1)
  local idle, waiting = {}, {}
  local tenants = redis.call('ZRANGE', share, from, math.min(from + many, behind) - 1)
  for _, lane in ipairs(lanes_of(queue, band)) do
    for place, at in ipairs(redis.call('ZMSCORE', P .. 'line:' .. lane, unpack(tenants))) do
      waiting[place] = waiting[place] or at
    end
  end
  for place, tenant in ipairs(tenants) do
    if not waiting[place] then
      idle[#idle + 1] = tenant
    end
  end
  return #idle > 0 and redis.call('ZREM', share, unpack(idle)) or 0
end

-- Some bands at a time; the next step goes on behind them.
local function prune_shares()
  local cursor = redis.call('HGET', P .. 'prune', 'bands') or '0'
  local given, removed = redis.call('HSCAN', P .. 'band', cursor, 'COUNT', 16), 0
  for place = 1, #given[2], 2 do
    local queue = string.match(given[2][place], '^[^%z]*')
    removed = removed + prune_share(queue, given[2][place + 1], math.min(100, limit))
    if removed >= limit then
      return removed
    end
  end
  if given[1] ~= '0' then
    redis.call('HSET', P .. 'prune', 'bands', given[1])
  elseif cursor ~= '0' then
    redis.call('HDEL', P .. 'prune', 'bands')
  end
  return removed
end

-- Workers silent for a day, and versions of types that none has had for a week.
local function prune_members()
  local silent = redis.call('ZRANGE', P .. 'workers', '-inf', '(' .. text_of(now - DAY), 'BYSCORE',
    'LIMIT', 0, limit)
  for _, worker in ipairs(silent) do
    redis.call('DEL', P .. 'worker:' .. encode(worker))
    redis.call('ZREM', P .. 'workers', worker)
  end
  local unused = redis.call('ZRANGE', P .. 'types_seen', '-inf', '(' .. text_of(now - 7 * DAY),
    'BYSCORE', 'LIMIT', 0, limit)
  for _, version in ipairs(unused) do
    redis.call('HDEL', P .. 'types', version)
    redis.call('ZREM', P .. 'types_seen', version)
  end
  return #silent + #unused
end

local jobs = prune_jobs()
tidy_pages(P)
local keys = prune_keys(now - key_ms)
local requests, shares = prune_requests(now - HOUR), prune_shares()
local more = full or jobs >= limit or keys >= limit or requests >= limit or shares >= limit
return { jobs, keys, requests + shares + prune_members(), more and 1 or 0 }
