-- line: whose turn it is in a band (queue, level) during a claim. After keys, record and turns.
--
-- The order is that of model/stride.py. Nothing is written here: a turn that was touched is as its
-- table says, until the claim writes it, and all others are as the store says.
--   claim  P, now, room (jobs that may still be taken), bytes (of arguments), step (values to read
--          at once), values of jobs by member, weights of tenants, weighted (there are some)
--   line   band, clock, lanes that are asked for, wide (other lanes may move its tenants on),
--          times (virtual times moved by this claim), shares (as they were), standing: turns in
--          their order
--   lane   number, list of (tenant, place) as read so far, `at` the next of them, turns by tenant,
--          touched: those that were taken from or fell asleep, stale: those that were moved on
--   turn   tenant, place, jobs as (member, due) as read so far, `taken` of them, `all`: there are
--          no more; where: false, 'fresh' (stands as the first of its lane), 'line' (stands, its
--          next job is due), 'blind' (stands, nobody has looked what is next), 'out'
-- Few tables and few new texts: they are what a script spends most of its time on.

local STEP, STALE_LIMIT, PAGE_LIMIT, MEMBER = 1000000, 500, 1000, 37
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local sub, number_of = string.sub, tonumber

-- Servers may compare texts by the rules of a language. Names are compared by their bytes.
local by_bytes = 'Z' < 'a' and 'a' < '\195\164'

local function name_before(one, other)
  if by_bytes then
    return one < other
  end
  for place = 1, min(#one, #other) do
    local a, b = string.byte(one, place), string.byte(other, place)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

-- ── reading ──────────────────────────────────────────────────────────────────────────────────

local function new_turn(lane, tenant, place)
  local turn = {
    lane = lane, tenant = tenant, place = place, taken = 0, jobs = false, key = false, all = false,
    where = false,
  }
  lane.turns[tenant] = turn
  return turn
end

-- Read on in a turn: its likely share of the room, and one more, which is its head afterwards.
local function read_jobs(claim, turn, share)
  local jobs = turn.jobs
  if not jobs then
    local want = min(share or ceil(claim.room / max(turn.lane.line.count, 1)), claim.room) + 1
    turn.key = turn_key_in(turn.lane.prefix, turn.tenant)
    turn.jobs = redis.call('ZRANGE', turn.key, 0, want - 1, 'WITHSCORES')
    turn.all = #turn.jobs < 2 * want
    return
  end
  local known = #jobs / 2
  local want = min(2 * known, claim.room) + 1
  local more = redis.call('ZRANGE', turn.key, known, known + want - 1, 'WITHSCORES')
  turn.all = #more < 2 * want
  for place = 1, #more do
    jobs[2 * known + place] = more[place]
  end
end

-- Due and member of the job that is next in a turn; nothing when there is none.
local function next_job(claim, turn)
  local at = 2 * turn.taken + 1
  local member = turn.jobs and turn.jobs[at]
  if not member then
    if turn.all then
      return nil
    end
    read_jobs(claim, turn)
    member = turn.jobs[at]
    if not member then
      return nil
    end
  end
  return number_of(turn.jobs[at + 1]), member
end

-- What the store knows of the tenants on a page of a lane: virtual times and weights.
local function read_tenants(claim, line, tenants)
  if line.wide then
    local times = redis.call('ZMSCORE', claim.P .. 'share:' .. line.band, unpack(tenants))
    for place, tenant in ipairs(tenants) do
      line.shares[tenant] = number_of(times[place] or '0')
    end
  end
  if claim.weighted then
    for place, text in ipairs(redis.call('HMGET', claim.P .. 'tenant', unpack(tenants))) do
      claim.weights[tenants[place]] = text and cjson.decode(text).weight or 1
    end
  end
end

-- Read the next page of those who stand in a lane.
local function read_lane_page(claim, lane)
  local limit = min(claim.room, PAGE_LIMIT)
  local list = redis.call('ZRANGE', claim.P .. 'line:' .. lane.number, lane.seen,
    lane.seen + limit - 1, 'WITHSCORES')
  lane.list, lane.at, lane.seen = list, 1, lane.seen + #list / 2
  lane.more = #list == 2 * limit
  lane.line.count = lane.line.count + #list / 2
  if #list > 0 and (lane.line.wide or claim.weighted) then
    local tenants = {}
    for place = 1, #list, 2 do
      tenants[#tenants + 1] = list[place]
    end
    read_tenants(claim, lane.line, tenants)
  end
end

-- Read the values of jobs together: of this turn, then of those that follow it in its lane.
local function read_values(claim, turn)
  local members, keys, count, prefix = {}, {}, 0, claim.P .. 'job:'
  local lane, many = turn.lane, min(claim.step, max(claim.room, 1))
  local function want(one, first)
    local jobs = one.jobs
    -- The last one read is there for its due time only, unless it is needed now.
    for place = 2 * first - 1, max(#jobs - (one.all and 0 or 2), 2 * first), 2 do
      if count == many then
        return
      end
      count = count + 1
      members[count], keys[count] = jobs[place], prefix .. sub(jobs[place], 12)
    end
  end
  want(turn, turn.taken + 1)
  local list, at = lane.list, lane.at
  while count < many and list[at] do
    if not lane.turns[list[at]] then
      local following = new_turn(lane, list[at], number_of(list[at + 1]))
      read_jobs(claim, following)
      want(following, 1)
    end
    at = at + 2
  end
  local largest, values = 1, claim.values
  for n, value in ipairs(redis.call('MGET', unpack(keys))) do
    values[members[n]] = value
    largest = max(largest, #value)
  end
  -- If they are all as large as the largest, no more than fit.
  claim.step = max(1, min(4 * claim.step, 500, floor(claim.bytes / largest) + 1))
end

-- ── standing in line ─────────────────────────────────────────────────────────────────────────

local function stands_before(claim, one, other)
  if one.place ~= other.place then
    return one.place < other.place
  end
  if one.tenant ~= other.tenant then
    return name_before(one.tenant, other.tenant)
  end
  local due, member = next_job(claim, one)
  local other_due, other_member = next_job(claim, other)
  return goes_before(due, member, other_due, other_member)
end

-- Put a turn among those that stand, by its place. Most come to the end, or to the front.
local function put(claim, line, turn, where)
  local standing, first, last = line.standing, line.first, line.last
  turn.where = where
  if first > last or not stands_before(claim, turn, standing[last]) then
    line.last = last + 1
    standing[last + 1] = turn
    return
  end
  if stands_before(claim, turn, standing[first]) then
    line.first = first - 1
    standing[first - 1] = turn
    return
  end
  local low, high = first + 1, last
  while low < high do
    local middle = floor((low + high) / 2)
    if stands_before(claim, turn, standing[middle]) then
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
local function advance(claim, lane)
  while true do
    local tenant = lane.list[lane.at]
    if tenant then
      local turn = lane.turns[tenant] or new_turn(lane, tenant, number_of(lane.list[lane.at + 1]))
      lane.at = lane.at + 2
      -- Who was taken out of turn stands elsewhere already.
      if not turn.where then
        put(claim, lane.line, turn, 'fresh')
        return
      end
    elseif lane.more then
      read_lane_page(claim, lane)
    else
      return
    end
  end
end

local function remove(claim, line, turn)
  local standing, first = line.standing, line.first
  local was = turn.where
  turn.where = 'out'
  if standing[first] == turn then
    standing[first] = nil
    line.first = first + 1
  else
    local place = first
    while standing[place] ~= turn do
      place = place + 1
    end
    for later = place, line.last do
      standing[later] = standing[later + 1]
    end
    line.last = line.last - 1
  end
  if was == 'fresh' then
    advance(claim, turn.lane)
  end
end

-- The line of a band: its clock, and the lanes that are asked for. Nobody stands in it yet.
local function new_line(claim, band, clock, wide, lanes)
  local line = {
    band = band, clock = clock, first_clock = clock, wide = wide, lanes = {}, count = 0,
    times = {}, shares = {}, standing = {}, first = 1, last = 0, stale = 0, open = false,
  }
  for place, lane in ipairs(lanes) do
    line.lanes[place] = {
      number = lane.number, name = lane.name, line = line, turns = {}, touched = {}, stale = {},
      prefix = claim.P .. 'turn:' .. lane.number .. ':', seen = 0, list = {}, at = 1, more = true,
    }
  end
  return line
end

local function open_line(claim, line)
  line.open = true
  for _, lane in ipairs(line.lanes) do
    read_lane_page(claim, lane)
  end
  for _, lane in ipairs(line.lanes) do
    advance(claim, lane)
  end
end

-- ── taking ───────────────────────────────────────────────────────────────────────────────────

-- Where a turn stands truly: another lane may have moved its tenant on.
local function true_place(line, turn)
  if line.wide then
    return max(turn.place, line.times[turn.tenant] or line.shares[turn.tenant])
  end
  return turn.place
end

-- The turn that is next, or nil when nobody here is due.
local function first_in_line(claim, line)
  if not line.open then
    open_line(claim, line)
  end
  while line.first <= line.last do
    local turn = line.standing[line.first]
    if turn.where == 'line' and not line.wide then
      return turn
    end
    local place = true_place(line, turn)
    if turn.place < place then
      line.stale = line.stale + 1
      if line.stale > STALE_LIMIT then
        return nil
      end
      remove(claim, line, turn)
      turn.place = place
      table.insert(turn.lane.stale, turn)
      put(claim, line, turn, 'blind')
    else
      local due = next_job(claim, turn)
      if due and due <= claim.now then
        return turn
      end
      remove(claim, line, turn)
      if turn.taken == 0 then
        table.insert(turn.lane.touched, turn)
      end
    end
  end
  return nil
end

-- Where a turn belongs after a job was taken from it: 'line', 'blind' or 'out'.
local function whereabouts(claim, line, turn)
  local jobs, at = turn.jobs, 2 * turn.taken
  local due = jobs[at + 2]
  if due and due == jobs[at] then
    return 'line'
  end
  -- With several tenants a turn is rarely reached again in this claim: look only when it is.
  if not due and not turn.all and not line.wide then
    return 'blind'
  end
  due = next_job(claim, turn)
  return due and due <= claim.now and 'line' or 'out'
end

-- Let a turn whose tenant was moved on stand where it belongs now.
local function stand_again(claim, line, turn)
  local where = whereabouts(claim, line, turn)
  local standing, first = line.standing, line.first
  if turn.where == 'line' or turn.where == 'blind' then
    if where ~= 'out' and standing[first] == turn
      and (first == line.last or stands_before(claim, turn, standing[first + 1])) then
      turn.where = where
      return
    end
    remove(claim, line, turn)
  end
  turn.where = 'out'
  if where ~= 'out' then
    put(claim, line, turn, where)
  end
end

-- Take the next job of a turn and move its tenant on; gives its member and value.
local function take(claim, line, turn, out_of_turn)
  local nth = turn.taken + 1
  local member = turn.jobs and turn.jobs[2 * nth - 1]
  if not member then
    member = select(2, next_job(claim, turn))
  end
  local value = claim.values[member]
  if not value then
    read_values(claim, turn)
    value = claim.values[member]
  end
  if turn.where == 'fresh' then
    turn.where = 'line'
    advance(claim, turn.lane)
  end
  if nth == 1 then
    local touched = turn.lane.touched
    touched[#touched + 1] = turn
  end
  local start = max(true_place(line, turn), line.clock)
  local place = start + floor(STEP * job_cost(value) / (claim.weights[turn.tenant] or 1))
  turn.taken, turn.place, line.times[turn.tenant] = nth, place, place
  if not out_of_turn then
    line.clock = start
  end
  stand_again(claim, line, turn)
  return member, value
end

-- ── who has waited longest ───────────────────────────────────────────────────────────────────

-- The head that fell due first among the turns of a lane that were not taken from: due, member,
-- tenant.
local function oldest_untouched(claim, lane)
  lane.heads = lane.heads or { list = {}, at = 1, seen = 0, more = true }
  local heads = lane.heads
  while true do
    local entry = heads.list[heads.at]
    if entry then
      local tenant = sub(entry, MEMBER + 1)
      local turn = lane.turns[tenant]
      if not turn or turn.taken == 0 and turn.where ~= 'out' then
        return number_of(heads.list[heads.at + 1]), sub(entry, 1, MEMBER), tenant
      end
      heads.at = heads.at + 2
    elseif heads.more then
      heads.list = redis.call('ZRANGE', claim.P .. 'heads:' .. lane.number, heads.seen,
        heads.seen + 31, 'WITHSCORES')
      heads.at, heads.seen = 1, heads.seen + #heads.list / 2
      heads.more = #heads.list == 64
    else
      return nil
    end
  end
end

-- The turn of a tenant that stands in a lane, wherever.
local function turn_of_tenant(claim, lane, tenant)
  local turn = lane.turns[tenant]
  if not turn then
    local place = redis.call('ZSCORE', claim.P .. 'line:' .. lane.number, tenant)
    turn = new_turn(lane, tenant, number_of(place))
    read_tenants(claim, lane.line, { tenant })
    read_jobs(claim, turn, 1)
  end
  return turn
end

-- The turn of these lines whose head has been due longest, if since before `before`.
local function longest_waiting(claim, lines, before)
  local best, best_lane, best_tenant, best_due, best_member = nil, nil, nil, before, ''
  for _, line in ipairs(lines) do
    for _, lane in ipairs(line.lanes) do
      for _, turn in ipairs(lane.touched) do
        local jobs, last = turn.jobs, 2 * turn.taken
        -- What follows is due no earlier than what was taken: most need no look.
        if turn.where ~= 'out'
          and goes_before(number_of(jobs[last]), jobs[last - 1], best_due, best_member) then
          local due, member = next_job(claim, turn)
          if due and due <= claim.now and goes_before(due, member, best_due, best_member) then
            best, best_due, best_member = turn, due, member
          end
        end
      end
      local due, member, tenant = oldest_untouched(claim, lane)
      if due and goes_before(due, member, best_due, best_member) then
        best, best_lane, best_tenant, best_due, best_member = nil, lane, tenant, due, member
      end
    end
  end
  if best_member == '' then
    return nil
  end
  best = best or turn_of_tenant(claim, best_lane, best_tenant)
  return best, best.lane.line
end
