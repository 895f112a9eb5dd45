-- moves: the five things that happen to jobs. A job enters its turn and leaves it; a claim starts it,
-- and it stops; and it ends. Each is written here and nowhere else: a verb decides what becomes of
-- its jobs, and moves them. After keys, record, turns, states, schedule and occurrence.
--
-- Moves take all jobs of a call at once, sorted into turns where that matters. What a job's own
-- value says is written by the verb.

-- ── turns of a call ──────────────────────────────────────────────────────────────────────────

local function empty_turn(lane, tenant)
  return { lane = lane, tenant = tenant, jobs = {}, due = false, member = false }
end

-- The turn of these to which a lane and a tenant belong; a new one is added.
local function turn_among(turns, lane, tenant)
  local name = lane .. '\0' .. tenant
  if not turns[name] then
    turns[name] = empty_turn(lane, tenant)
    turns[#turns + 1] = turns[name]
  end
  return turns[name]
end

-- A job is to enter a turn.
local function join_turn(turn, due, member)
  local jobs = turn.jobs
  local n = #jobs
  jobs[n + 1], jobs[n + 2] = due, member
  if not turn.due or due < turn.due or due == turn.due and member < turn.member then
    turn.due, turn.member = due, member
  end
end

-- ── enter ────────────────────────────────────────────────────────────────────────────────────

-- Awake turns to which jobs have come: a job that goes before the head is the head now. That is
-- so only after the clock went back, and for old jobs that come back.
local function rehead(P, lane, turns)
  local heads = P .. 'heads:' .. lane
  local last = redis.call('ZRANGE', heads, 0, 0, 'REV', 'WITHSCORES')
  for _, turn in ipairs(turns) do
    -- Most come behind all heads of the lane.
    if goes_before(turn.due, turn.member, tonumber(last[2]), last[1]) then
      -- At most 500 have come: the old head is among as many behind the first.
      local first = redis.call('ZRANGE', turn_key(P, lane, turn.tenant), 0, 500)
      if first[1] == turn.member then
        for n, member in ipairs(first) do
          first[n] = member .. turn.tenant
        end
        redis.call('ZREM', heads, unpack(first))
        redis.call('ZADD', heads, turn.due, first[1])
      end
    end
  end
end

-- Turns out of line to which jobs have come: they wake if their head is a newcomer that is due.
local function stir(P, lane, band, turns, now)
  local asleep = P .. 'asleep:' .. lane
  local known = redis.call('ZMSCORE', asleep, unpack(tenants_of(turns)))
  local woken, rest, later = {}, {}, {}
  for place, turn in ipairs(turns) do
    local before = known[place] and tonumber(known[place])
    local first = not before or turn.due < before
    if turn.due == before then
      first = redis.call('ZRANGE', turn_key(P, lane, turn.tenant), 0, 0)[1] == turn.member
    end
    if first and turn.due <= now then
      woken[#woken + 1] = turn
      if before then
        rest[#rest + 1] = turn.tenant
      end
    elseif first then
      later[#later + 1] = turn.due
      later[#later + 1] = turn.tenant
    end
  end
  send('ZREM', asleep, rest)
  send('ZADD', asleep, later)
  wake_turns(P, lane, band, woken)
end

-- Turns of one lane to which jobs have come: in line, asleep, or shut because the tenant is held.
local function stand(P, lane, turns, now)
  local awake, others, free = {}, {}, {}
  local places = redis.call('ZMSCORE', P .. 'line:' .. lane, unpack(tenants_of(turns)))
  for place, turn in ipairs(turns) do
    table.insert(places[place] and awake or others, turn)
  end
  if #awake > 0 then
    rehead(P, lane, awake)
  end
  if #others == 0 then
    return
  end
  local given = redis.call('HMGET', P .. 'tenant', unpack(tenants_of(others)))
  for place, turn in ipairs(others) do
    if is_held_by(given[place]) then
      redis.call('ZADD', P .. 'shut:' .. lane, 'LT', turn.due, turn.tenant)
    else
      free[#free + 1] = turn
    end
  end
  local info = lane_of(P, lane)
  redis.call('SADD', active_key(P, info.queue), lane)
  if #free > 0 then
    stir(P, lane, info.band, free, now)
  end
end

-- Jobs that are not held wait from now on: those that joined these turns, at most 500. One that
-- stands there already and falls due earlier than it did is moved by this alone: leaving first
-- could cost its turn the place.
local function enter_jobs(P, turns, now)
  local lanes, changes = {}, {}
  for _, turn in ipairs(turns) do
    local lane, tenant = turn.lane, turn.tenant
    local come = redis.call('ZADD', turn_key(P, lane, tenant), unpack(turn.jobs))
    changes[tenant] = (changes[tenant] or 0) + come
    lanes[lane] = lanes[lane] or {}
    table.insert(lanes[lane], turn)
  end
  count_waiting(P, changes)
  for lane, some in pairs(lanes) do
    stand(P, lane, some, now)
  end
end

-- ── leave ────────────────────────────────────────────────────────────────────────────────────

-- A turn whose head was `head` has lost jobs. An awake one whose head is due later falls asleep and
-- loses its place; an empty one is gone.
local function behead(P, turn, head, now)
  local lane, tenant = turn.lane, turn.tenant
  local line, heads, asleep = P .. 'line:' .. lane, P .. 'heads:' .. lane, P .. 'asleep:' .. lane
  local first = redis.call('ZRANGE', turn_key(P, lane, tenant), 0, 0, 'WITHSCORES')
  local due, changed = tonumber(first[2]), first[1] ~= head
  if not first[1] then
    redis.call('ZREM', line, tenant)
    redis.call('ZREM', heads, head .. tenant)
    redis.call('ZREM', asleep, tenant)
    redis.call('ZREM', P .. 'shut:' .. lane, tenant)
    tidy_lane(P, lane, lane_of(P, lane).queue)
  elseif not redis.call('ZSCORE', line, tenant) then
    if changed then
      redis.call('ZADD', asleep, 'XX', due, tenant)
    end
  elseif due > now then
    redis.call('ZREM', line, tenant)
    redis.call('ZREM', heads, head .. tenant)
    redis.call('ZADD', asleep, due, tenant)
  elseif changed then
    redis.call('ZREM', heads, head .. tenant)
    redis.call('ZADD', heads, due, first[1] .. tenant)
  end
end

-- Jobs wait no more: those that these turns have as `jobs`, by their members.
local function leave_jobs(P, turns, now)
  local changes = {}
  for _, turn in ipairs(turns) do
    local key, tenant = turn_key(P, turn.lane, turn.tenant), turn.tenant
    local head = redis.call('ZRANGE', key, 0, 0)[1]
    local gone = redis.call('ZREM', key, unpack(turn.jobs))
    if gone > 0 then
      changes[tenant] = (changes[tenant] or 0) - gone
      behead(P, turn, head, now)
    end
  end
  count_waiting(P, changes)
end

-- ── start and stop ───────────────────────────────────────────────────────────────────────────

-- A claim has these jobs from now on. They have left their turns already.
local function start_jobs(P, nonce, ids, runs, lease_ms, now)
  local written, leases = {}, {}
  local span, expires = string.format('%.0f', lease_ms), string.format('%.0f', now + lease_ms)
  for place, id in ipairs(ids) do
    written[2 * place - 1], written[2 * place] = id, runs[place]
    leases[2 * place - 1], leases[2 * place] = expires, id
  end
  redis.call('HSET', P .. 'run', unpack(written))
  redis.call('ZADD', P .. 'lease:' .. span, unpack(leases))
  redis.call('SADD', P .. 'spans', span)
  redis.call('HINCRBY', P .. 'claimed', nonce, #ids)
  if redis.call('EXISTS', P .. 'progress') == 1 then
    redis.call('HDEL', P .. 'progress', unpack(ids))
  end
end

-- These claims are over.
local function stop_jobs(P, ids, runs)
  local leases, nonces = {}, {}
  for place, id in ipairs(ids) do
    local run = runs[place]
    local span, nonce = run_lease_ms(run), run_nonce(run)
    local others = leases[span]
    if not others then
      others = {}
      leases[span] = others
    end
    others[#others + 1] = id
    nonces[nonce] = (nonces[nonce] or 0) + 1
  end
  redis.call('HDEL', P .. 'run', unpack(ids))
  for span, some in pairs(leases) do
    redis.call('ZREM', P .. 'lease:' .. string.format('%.0f', span), unpack(some))
  end
  for nonce, some in pairs(nonces) do
    if redis.call('HINCRBY', P .. 'claimed', nonce, -some) <= 0 then
      redis.call('HDEL', P .. 'claimed', nonce)
    end
  end
end

-- ── end ──────────────────────────────────────────────────────────────────────────────────────

-- Jobs have come to an end, each to the state at its place; `values` are those from before it.
local function end_jobs(P, ids, values, states, now)
  local ends, others, at = {}, {}, string.format('%.0f', now)
  local has_cancels = redis.call('EXISTS', P .. 'cancel') == 1
  for place, id in ipairs(ids) do
    local state = states[place]
    local list = ends[state]
    if not list then
      list = {}
      ends[state] = list
    end
    local n = #list
    list[n + 1], list[n + 2] = at, id
    -- Of a cancelled job it stays to be seen who wanted that.
    if has_cancels and state ~= 'C' then
      others[#others + 1] = id
    end
    -- In the order of the call: a schedule counts failures that follow each other.
    if bit.band(job_flags(values[place]), JOB_SCHEDULE_FLAG) ~= 0 then
      tell_schedule(P, id, values[place], state, now)
    end
  end
  for state, list in pairs(ends) do
    redis.call('ZADD', P .. 'ended:' .. STATES[state], unpack(list))
  end
  if redis.call('EXISTS', P .. 'hold') == 1 then
    redis.call('HDEL', P .. 'hold', unpack(ids))
  end
  if #others > 0 then
    redis.call('HDEL', P .. 'cancel', unpack(others))
  end
end
