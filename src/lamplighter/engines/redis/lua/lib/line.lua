-- line: whose turn it is in a band (queue, level) during a claim, in the order of model/stride.py.
-- After keys, record and turns; the claim has P, now, and `room` and `bytes`: how many jobs may still
-- be taken, and how many bytes of arguments. Nothing is written here: a turn that was touched is as
-- its table says, until the claim writes it, and all others are as the store says.
--   line   band, clock, lanes that are asked for, wide (other lanes may move its tenants on),
--          times (virtual times moved by this claim), shares (as they were), standing: turns in
--          their order, from `first` to `last`
--   lane   number, list of (tenant, place) as read so far, `at` the next of them, turns by tenant,
--          touched: those that were taken from or fell asleep, stale: those that were moved on
--   turn   tenant, place, jobs as (member, due) as read so far, `taken` of them, `all`: there are
--          no more, ready: the next is known to be due; where: false, 'fresh' (stands as the first
--          of its lane), 'line' (stands), 'out'
-- Few tables and few new texts: they are what a script spends most of its time on.

local STEP, STALE_LIMIT, PAGE_LIMIT, MEMBER = 1000000, 500, 1000, 37
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local sub, tonumber = string.sub, tonumber
local weighted = redis.call('EXISTS', P .. 'tenant') == 1
local weights, values, step = {}, {}, 32  -- of tenants; of jobs by member, so many read at once

-- ── reading ──────────────────────────────────────────────────────────────────────────────────

local function new_turn(lane, tenant, place)
  local turn = {
    lane = lane, tenant = tenant, place = place, taken = 0, jobs = false, key = false, all = false,
    ready = false, where = false,
  }
  lane.turns[tenant] = turn
  return turn
end

-- Read on in a turn: its likely share of the room, and one more, which is its head afterwards.
local function read_jobs(turn)
  local jobs = turn.jobs
  local known = jobs and #jobs / 2 or 0
  turn.key = turn.key or turn_key(P, turn.lane.number, turn.tenant)
  local likely = known > 0 and 2 * known or ceil(room / max(turn.lane.line.count, 1))
  local want = min(likely, room) + 1
  local more = redis.call('ZRANGE', turn.key, known, known + want - 1, 'WITHSCORES')
  turn.all, turn.jobs = #more < 2 * want, jobs or more
  for place = 1, known > 0 and #more or 0 do
    jobs[2 * known + place] = more[place]
  end
end

-- Due and member of the job that is next in a turn; nothing when there is none.
local function next_job(turn)
  local at = 2 * turn.taken + 1
  if not turn.all and not (turn.jobs and turn.jobs[at]) then
    read_jobs(turn)
  end
  local member = turn.jobs[at]
  if member then
    return tonumber(turn.jobs[at + 1]), member
  end
end

-- What the store knows of tenants in a lane: virtual times and weights.
local function read_tenants(line, tenants)
  if line.wide then
    local times = redis.call('ZMSCORE', P .. 'share:' .. line.band, unpack(tenants))
    for place, tenant in ipairs(tenants) do
      line.shares[tenant] = tonumber(times[place] or '0')
    end
  end
  if weighted then
    for place, text in ipairs(redis.call('HMGET', P .. 'tenant', unpack(tenants))) do
      weights[tenants[place]] = text and cjson.decode(text).weight or 1
    end
  end
end

-- Read the next page of those who stand in a lane.
local function read_page(lane)
  local line, limit, tenants = lane.line, min(room, PAGE_LIMIT), {}
  local list = redis.call('ZRANGE', P .. 'line:' .. lane.number, lane.seen, lane.seen + limit - 1,
    'WITHSCORES')
  lane.list, lane.at, lane.seen = list, 1, lane.seen + #list / 2
  lane.more, line.count = #list == 2 * limit, line.count + #list / 2
  for place = 1, (line.wide or weighted) and #list or 0, 2 do
    tenants[#tenants + 1] = list[place]
  end
  if #tenants > 0 then
    read_tenants(line, tenants)
  end
end

-- Read the values of jobs together: of this turn, then of those that follow it in its lane.
local function read_values(turn)
  local members, keys, lane, at = {}, {}, turn.lane, turn.lane.at
  local many, largest, list = min(step, max(room, 1)), 1, turn.lane.list
  while true do
    local jobs, first = turn.jobs, 2 * turn.taken + 1
    -- The last one read is there for its due time only, unless it is needed now.
    local last = max(#jobs - (turn.all and 0 or 2), first)
    for place = first, min(last, first + 2 * (many - #keys) - 1), 2 do
      members[#members + 1], keys[#keys + 1] = jobs[place], P .. 'job:' .. sub(jobs[place], 12)
    end
    while list[at] and lane.turns[list[at]] do
      at = at + 2
    end
    if #keys >= many or not list[at] then
      break
    end
    turn = new_turn(lane, list[at], tonumber(list[at + 1]))
    read_jobs(turn)
  end
  for n, value in ipairs(redis.call('MGET', unpack(keys))) do
    values[members[n]], largest = value, max(largest, #value)
  end
  -- If they are all as large as the largest, no more than fit.
  step = max(1, min(4 * step, 500, floor(bytes / largest) + 1))
end

-- ── standing in line ─────────────────────────────────────────────────────────────────────────

local function stands_before(one, other)
  if one.place ~= other.place then
    return one.place < other.place
  elseif one.tenant ~= other.tenant then
    return name_before(one.tenant, other.tenant)
  end
  local due, member = next_job(one)
  return goes_before(due, member, next_job(other))
end

-- Put a turn among those that stand, by its place. Most come to the front, or to the end.
local function put(turn, where)
  local line = turn.lane.line
  local standing, first, last = line.standing, line.first, line.last
  turn.where = where
  if first <= last and stands_before(turn, standing[first]) then
    line.first = first - 1
    standing[first - 1] = turn
    return
  end
  local low, high = first, last + 1
  if first > last or not stands_before(turn, standing[last]) then
    low = high
  end
  while low < high do
    local middle = floor((low + high) / 2)
    if stands_before(turn, standing[middle]) then
      high = middle
    else
      low = middle + 1
    end
  end
  for place = last, low, -1 do
    standing[place + 1] = standing[place]
  end
  standing[low] = turn
  line.last = last + 1
end

-- Of each lane one turn stands that was not touched: the first. The next takes its place.
local function advance(lane)
  while lane.list[lane.at] or lane.more do
    local tenant = lane.list[lane.at]
    if not tenant then
      read_page(lane)
    else
      local turn = lane.turns[tenant] or new_turn(lane, tenant, tonumber(lane.list[lane.at + 1]))
      lane.at = lane.at + 2
      -- Who was taken out of turn stands elsewhere already.
      if not turn.where then
        put(turn, 'fresh')
        return
      end
    end
  end
end

local function remove(turn)
  local line, was = turn.lane.line, turn.where
  local standing, place = line.standing, line.first
  turn.where = 'out'
  if standing[place] == turn then
    standing[place] = nil
    line.first = place + 1
  else
    while standing[place] ~= turn do
      place = place + 1
    end
    for later = place, line.last do
      standing[later] = standing[later + 1]
    end
    line.last = line.last - 1
  end
  if was == 'fresh' then
    advance(turn.lane)
  end
end

-- The line of a band: its clock, and the lanes that are asked for. Nobody stands in it yet.
local function new_line(band, clock, wide, lanes)
  local line = {
    band = band, clock = clock, first_clock = clock, wide = wide, lanes = {}, count = 0,
    times = {}, shares = {}, standing = {}, first = 1, last = 0, stale = 0, open = false,
  }
  for place, lane in ipairs(lanes) do
    line.lanes[place] = {
      number = lane.number, name = lane.name, line = line, turns = {}, touched = {}, stale = {},
      seen = 0, list = {}, at = 1, more = true,
    }
  end
  return line
end

-- ── taking ───────────────────────────────────────────────────────────────────────────────────

-- Where a turn stands truly: another lane may have moved its tenant on.
local function true_place(turn)
  local line = turn.lane.line
  if line.wide then
    return max(turn.place, line.times[turn.tenant] or line.shares[turn.tenant])
  end
  return turn.place
end

-- The turn that is next, or nil when nobody here is due.
local function first_in_line(line)
  if not line.open then
    line.open = true
    for _, lane in ipairs(line.lanes) do
      advance(lane)
    end
  end
  while line.first <= line.last do
    local turn = line.standing[line.first]
    if turn.ready and not line.wide then
      return turn
    end
    local place = true_place(turn)
    if turn.place < place then
      line.stale = line.stale + 1
      if line.stale > STALE_LIMIT then
        return nil
      end
      remove(turn)
      turn.place = place
      table.insert(turn.lane.stale, turn)
      put(turn, 'line')
    else
      local due = next_job(turn)
      if due and due <= now then
        return turn
      end
      remove(turn)
      if turn.taken == 0 then
        table.insert(turn.lane.touched, turn)
      end
    end
  end
end

-- Let a turn that was taken from stand where it belongs now, if it has another job that is due.
local function stand_again(turn)
  local line, jobs, at = turn.lane.line, turn.jobs, 2 * turn.taken
  local due, again, first = jobs[at + 2], true, line.first
  turn.ready = due ~= nil and due == jobs[at]
  -- With several tenants a turn is rarely reached again in this claim: look only when it is.
  if not turn.ready and (due or turn.all or line.wide) then
    due = next_job(turn)
    again = due ~= nil and due <= now
    turn.ready = again
  end
  if turn.where == 'line' then
    if again and line.standing[first] == turn
      and (first == line.last or stands_before(turn, line.standing[first + 1])) then
      return
    end
    remove(turn)
  end
  turn.where = 'out'
  if again then
    put(turn, 'line')
  end
end

-- Take the next job of a turn that was looked at, and move its tenant on.
local function take(turn, out_of_turn)
  local lane, line, nth = turn.lane, turn.lane.line, turn.taken + 1
  local member = turn.jobs[2 * nth - 1]
  if not values[member] then
    read_values(turn)
  end
  local value = values[member]
  if turn.where == 'fresh' then
    turn.where = 'line'
    advance(lane)
  end
  if nth == 1 then
    lane.touched[#lane.touched + 1] = turn
  end
  local start = max(true_place(turn), line.clock)
  local place = start + floor(STEP * job_cost(value) / (weights[turn.tenant] or 1))
  turn.taken, turn.place, line.times[turn.tenant] = nth, place, place
  if not out_of_turn then
    line.clock = start
  end
  stand_again(turn)
  return member, value
end

-- ── who has waited longest ───────────────────────────────────────────────────────────────────

-- Of the heads of a lane that were not taken from, the one that fell due first.
local function oldest_untouched(lane)
  lane.heads = lane.heads or { list = {}, at = 1, seen = 0, more = true }
  local heads = lane.heads
  while heads.list[heads.at] or heads.more do
    local entry = heads.list[heads.at]
    if not entry then
      heads.list = redis.call('ZRANGE', P .. 'heads:' .. lane.number, heads.seen, heads.seen + 31,
        'WITHSCORES')
      heads.at, heads.seen, heads.more = 1, heads.seen + 32, #heads.list == 64
    else
      local tenant = sub(entry, MEMBER + 1)
      local turn = lane.turns[tenant]
      if not turn or turn.taken == 0 and turn.where ~= 'out' then
        return tonumber(heads.list[heads.at + 1]), sub(entry, 1, MEMBER), tenant
      end
      heads.at = heads.at + 2
    end
  end
end

-- The turn of these lines whose head has been due longest, if since before `before`.
local function longest_waiting(lines, before)
  local best, best_lane, best_tenant, best_due, best_member = nil, nil, nil, before, ''
  for _, line in ipairs(lines) do
    for _, lane in ipairs(line.lanes) do
      for _, turn in ipairs(lane.touched) do
        local jobs, last = turn.jobs, 2 * turn.taken
        -- What follows is due no earlier than what was taken: most need no look.
        if turn.where ~= 'out'
          and goes_before(tonumber(jobs[last]), jobs[last - 1], best_due, best_member) then
          local due, member = next_job(turn)
          if due and due <= now and goes_before(due, member, best_due, best_member) then
            best, best_due, best_member = turn, due, member
          end
        end
      end
      local due, member, tenant = oldest_untouched(lane)
      if due and goes_before(due, member, best_due, best_member) then
        best, best_lane, best_tenant, best_due, best_member = false, lane, tenant, due, member
      end
    end
  end
  if best == false then
    best = best_lane.turns[best_tenant]
    if not best then
      local place = redis.call('ZSCORE', P .. 'line:' .. best_lane.number, best_tenant)
      best = new_turn(best_lane, best_tenant, tonumber(place))
      read_tenants(best_lane.line, { best_tenant })
    end
    next_job(best)
  end
  return best
end
