-- claim: hand out due jobs, fairly, in the order of model/stride.py.
-- KEYS  1 shard
-- ARGV  1 clock  2 nonce  3 worker  4 how many jobs at most  5 lease in ms  6 bytes of arguments
--       7, 8, 9 how many queues, types and requirements  10… per queue name and quota; types;
--       requirements; topics that will be waited for if nothing due is left
-- RETURNS  'repeated' if the nonce was used before; otherwise 'claimed', ms until something asked
--          for is due or '', ms that may pass without a look, numbers of the last news of the
--          topics, unless something due was left; then per queue that gave something:
--          how many hand-outs it had before, the lanes, the lane of each job as <I2 or '' for the
--          first, and in the order of their hand-outs id and value of each job
-- TOUCHES  job (reads), run, lease:<ms>, spans, requests, claimed, progress, handed, bands,
--          share:<band>, waits, the turns of these jobs and those that fall due, 64 a band. Bound:
--          1,000 jobs.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/line.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local nonce, worker, limit = ARGV[2], ARGV[3], math.min(tonumber(ARGV[4]), 1000)
local lease_ms, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local queue_count, type_count = tonumber(ARGV[7]), tonumber(ARGV[8])
local requirement_count = tonumber(ARGV[9])
local FIRST_QUEUE = 10
local FIRST_TYPE = FIRST_QUEUE + 2 * queue_count
local FIRST_REQUIREMENT = FIRST_TYPE + type_count
local FIRST_TOPIC = FIRST_REQUIREMENT + requirement_count
local HOUR_MS, WAKE_LIMIT, MAX_WAIT_MS, STARVED_EVERY = 3600000, 64, 60000, 10
local ALIVE_MS, LOOKS_PER_SECOND = 60000, 100

local claim = {
  P = P, now = now, room = limit, bytes = max_bytes, step = 32, values = {}, weights = {},
}

local function names(first, count)
  local found = {}
  for place = first, first + count - 1 do
    found[ARGV[place]] = true
  end
  return found
end

-- ── what is asked for ────────────────────────────────────────────────────────────────────────

local types = names(FIRST_TYPE, type_count)
local requirements = names(FIRST_REQUIREMENT, requirement_count)

local function held_types(lanes)
  local asked, held = {}, {}
  for place, lane in ipairs(lanes) do
    asked[place] = lane.type
  end
  for place, text in ipairs(redis.call('HMGET', P .. 'type', unpack(asked))) do
    held[asked[place]] = text and cjson.decode(text).hold ~= nil
  end
  return held
end

-- Sort the lanes of a queue into bands, the highest level first; only bands that are asked for.
local function bands_of(lanes)
  local held, bands, sorted = held_types(lanes), {}, {}
  for _, lane in ipairs(lanes) do
    local band = bands[lane.band]
    if not band then
      band = { id = lane.band, level = lane.level, lanes = {}, asked = {} }
      bands[lane.band] = band
    end
    band.lanes[#band.lanes + 1] = lane
    if types[lane.type] and requirements[lane.requirement] and not held[lane.type] then
      if #band.asked == 0 then
        sorted[#sorted + 1] = band
      end
      band.asked[#band.asked + 1] = lane
    end
  end
  table.sort(sorted, function(one, other) return one.level < other.level end)
  return sorted
end

-- A queue as the claim sees it, with the bands that are asked for.
local function open_queue(name)
  local queue = {
    name = name, bands = {}, before = now - MAX_WAIT_MS, starving = true, members = {}, values = {},
    lanes = {},
  }
  local text = redis.call('HGET', P .. 'queue', name)
  local settings = text and cjson.decode(text) or {}
  if settings.hold == nil then
    queue.before = now - (settings.max_wait or MAX_WAIT_MS)
    local numbers = redis.call('SMEMBERS', active_key(P, name))
    if #numbers > 0 then
      local lanes = {}
      for place, lane in ipairs(redis.call('HMGET', P .. 'lane', unpack(numbers))) do
        lanes[place] = read_lane(numbers[place], lane)
        lanes[place].name = lane
      end
      queue.bands = bands_of(lanes)
    end
  end
  return queue
end

-- ── waking ───────────────────────────────────────────────────────────────────────────────────

-- Let those of one lane stand in line who have slept until now.
local function wake(lane, tenants)
  local dues, members = {}, {}
  for place, tenant in ipairs(tenants) do
    local first = redis.call('ZRANGE', turn_key(P, lane.number, tenant), 0, 0, 'WITHSCORES')
    members[place], dues[place] = first[1], first[2]
  end
  redis.call('ZREM', P .. 'asleep:' .. lane.number, unpack(tenants))
  wake_up(P, lane.number, lane.band, tenants, dues, members)
end

-- Wake whose head is due, in all lanes of a band: those that have been due longest.
local function wake_band(band)
  local sleepers = {}
  for _, lane in ipairs(band.lanes) do
    local due = redis.call('ZRANGE', P .. 'asleep:' .. lane.number, '-inf', now, 'BYSCORE',
      'LIMIT', 0, WAKE_LIMIT, 'WITHSCORES')
    for place = 1, #due, 2 do
      sleepers[#sleepers + 1] = { lane, due[place], tonumber(due[place + 1]) }
    end
  end
  if #sleepers > WAKE_LIMIT then
    table.sort(sleepers, function(one, other) return one[3] < other[3] end)
  end
  local by_lane = {}
  for place = 1, math.min(#sleepers, WAKE_LIMIT) do
    local lane, tenant = sleepers[place][1], sleepers[place][2]
    by_lane[lane] = by_lane[lane] or {}
    table.insert(by_lane[lane], tenant)
  end
  for lane, tenants in pairs(by_lane) do
    wake(lane, tenants)
  end
end

-- ── handing out ──────────────────────────────────────────────────────────────────────────────

-- Look who stands in line; before anything of a queue is handed out.
local function line_up(queue)
  local ids = {}
  for place, band in ipairs(queue.bands) do
    wake_band(band)
    ids[place] = band.id
  end
  queue.lines, queue.first = {}, tonumber(redis.call('HGET', P .. 'handed', queue.name) or '0')
  queue.handed = queue.first
  if #ids > 0 then
    local clocks = redis.call('HMGET', P .. 'bands', unpack(ids))
    local widths = redis.call('HMGET', P .. 'band_lanes', unpack(ids))
    for place, band in ipairs(queue.bands) do
      queue.lines[place] = new_line(claim, band.id, tonumber(clocks[place] or '0'),
        widths[place] ~= '1', band.asked)
    end
  end
end

-- Whose job is next: mostly the first of the highest level, every tenth time who waited longest.
local function next_turn(queue)
  if queue.starving and (queue.handed + 1) % STARVED_EVERY == 0 then
    local turn, line = longest_waiting(claim, queue.lines, queue.before)
    if turn then
      return turn, line, true
    end
    -- Heads only get later while jobs are taken: nobody starves in this claim any more.
    queue.starving = false
  end
  for _, line in ipairs(queue.lines) do
    local turn = first_in_line(claim, line)
    if turn then
      return turn, line, false
    end
  end
  return nil
end

local function hand_out(queue, quota)
  local members, values, lanes = queue.members, queue.values, queue.lanes
  local last, count = claim.room - quota, #members
  while claim.room > last and claim.room > 0 do
    local turn, line, out_of_turn = next_turn(queue)
    if not turn then
      return
    end
    local member, value = take(claim, line, turn, out_of_turn)
    queue.handed, count = queue.handed + 1, count + 1
    members[count], values[count], lanes[count] = member, value, turn.lane.name
    claim.bytes = claim.bytes - job_args_size(value)
    claim.room = claim.bytes > 0 and claim.room - 1 or 0
  end
end

-- ── writing ──────────────────────────────────────────────────────────────────────────────────

local function send(command, key, list)
  for first = 1, #list, 2000 do
    redis.call(command, key, unpack(list, first, math.min(first + 1999, #list)))
  end
end

local function add(list, one, other)
  list[#list + 1] = one
  list[#list + 1] = other
end

-- What tenants have waiting less than before, by their names.
local left = {}

-- Write where a touched turn stands now: in line, asleep, or nowhere.
local function write_turn(turn, lists)
  left[turn.tenant] = (left[turn.tenant] or 0) - turn.taken
  local due, member = next_job(claim, turn)
  lists.old_heads[#lists.old_heads + 1] = turn.jobs[1] .. turn.tenant
  if not member then
    lists.ended[#lists.ended + 1] = turn.key
  elseif turn.taken > 0 then
    redis.call('ZREMRANGEBYRANK', turn.key, 0, turn.taken - 1)
  end
  if member and due <= now then
    add(lists.line, turn.place, turn.tenant)
    add(lists.heads, turn.jobs[2 * turn.taken + 2], member .. turn.tenant)
  else
    lists.gone[#lists.gone + 1] = turn.tenant
    if member then
      add(lists.asleep, due, turn.tenant)
    end
  end
end

local function write_lane(queue, lane)
  local lists = { line = {}, gone = {}, heads = {}, old_heads = {}, asleep = {}, ended = {} }
  for _, turn in ipairs(lane.touched) do
    write_turn(turn, lists)
  end
  for _, turn in ipairs(lane.stale) do
    if turn.taken == 0 and turn.where ~= 'out' then
      add(lists.line, turn.place, turn.tenant)
    end
  end
  local line, heads = P .. 'line:' .. lane.number, P .. 'heads:' .. lane.number
  send('ZREM', line, lists.gone)
  send('ZADD', line, lists.line)
  send('ZREM', heads, lists.old_heads)
  send('ZADD', heads, lists.heads)
  send('ZADD', P .. 'asleep:' .. lane.number, lists.asleep)
  if #lists.ended > 0 then
    redis.call('DEL', unpack(lists.ended))
    tidy_lane(P, lane.number, queue.name)
  end
end

-- Virtual times that the clock has passed mean nothing where nobody can stand before them: each
-- claim removes some. Where there are other lanes, somebody may, who has not been rewritten yet.
local function forget_shares(line, many)
  local share = P .. 'share:' .. line.band
  local past = redis.call('ZRANGE', share, '-inf', line.clock, 'BYSCORE', 'LIMIT', 0, many)
  if #past > 0 then
    redis.call('ZREMRANGEBYRANK', share, 0, #past - 1)
  end
end

local function write_line(queue, line)
  local times = {}
  for tenant, time in pairs(line.times) do
    add(times, time, tenant)
  end
  for _, lane in ipairs(line.lanes) do
    if #lane.touched + #lane.stale > 0 then
      write_lane(queue, lane)
    end
  end
  if #times > 0 then
    send('ZADD', P .. 'share:' .. line.band, times)
    if line.clock ~= line.first_clock then
      redis.call('HSET', P .. 'bands', line.band, line.clock)
      if not line.wide then
        forget_shares(line, #times)
      end
    end
  end
end

-- The lanes of what a queue gives, each once, and for each job the number of its lane as <I2.
local function lanes_of(queue)
  local names, numbers, places = {}, {}, {}
  for place, name in ipairs(queue.lanes) do
    if not numbers[name] then
      names[#names + 1] = name
      numbers[name] = struct.pack('<I2', #names)
    end
    places[place] = numbers[name]
  end
  return names, #names == 1 and '' or table.concat(places)
end

-- Write the jobs of a queue as running, and add them to the answer.
local function write_jobs(queue, answer)
  local run, leases, ids, begins, jobs = {}, {}, {}, {}, {}
  local claimed = {
    lease = 0, claimed = now, handout = 0, nonce = nonce, lease_ms = lease_ms, started = 0,
    worker = worker,
  }
  local ends = sub(pack_run(claimed), RUN_NONCE)
  local expires = string.format('%.0f', now + lease_ms)
  for place, member in ipairs(queue.members) do
    local id, value = sub(member, 12), queue.values[place]
    local lease = job_lease(value) + 1
    if not begins[lease] then
      claimed.lease = lease
      begins[lease] = sub(pack_run(claimed), 1, RUN_HANDOUT - 1)
    end
    ids[place] = id
    run[2 * place - 1] = id
    run[2 * place] = begins[lease] .. struct.pack('<I8', queue.first + place) .. ends
    leases[2 * place - 1], leases[2 * place] = expires, id
    jobs[2 * place - 1], jobs[2 * place] = id, value
  end
  send('HSET', P .. 'run', run)
  send('ZADD', P .. 'lease:' .. ARGV[5], leases)
  if claim.progressed then
    send('HDEL', P .. 'progress', ids)
  end
  redis.call('HSET', P .. 'handed', queue.name, queue.handed)
  local names, places = lanes_of(queue)
  for _, part in ipairs({ queue.first, names, places, jobs }) do
    answer[#answer + 1] = part
  end
end

local function write_waits()
  local tenants, changes = {}, {}
  for tenant, change in pairs(left) do
    tenants[#tenants + 1] = tenant
    changes[#changes + 1] = change
  end
  count_waiting(P, tenants, changes)
end

-- Remember that this nonce has handed out something, for an hour and as long as one of them runs.
local function note_request(count)
  local requests = P .. 'requests'
  local old = redis.call('ZRANGE', requests, '-inf', now - HOUR_MS, 'BYSCORE', 'LIMIT', 0, 4)
  if #old > 0 then
    redis.call('ZREM', requests, unpack(old))
  end
  redis.call('ZADD', requests, now, nonce)
  redis.call('HSET', P .. 'claimed', nonce, count)
  redis.call('SADD', P .. 'spans', ARGV[5])
end

-- Milliseconds until something of these queues is due, '' when nothing waits.
local function poll_after(queues)
  local soonest = nil
  for _, queue in ipairs(queues) do
    for _, band in ipairs(queue.bands) do
      for _, lane in ipairs(band.asked) do
        for _, where in ipairs({ 'heads:', 'asleep:' }) do
          local first = redis.call('ZRANGE', P .. where .. lane.number, 0, 0, 'WITHSCORES')
          local due = first[2] and tonumber(first[2])
          if due and due <= now then
            return 0
          end
          soonest = due and math.min(due, soonest or due) or soonest
        end
      end
    end
  end
  return soonest and soonest - now or ''
end

-- Milliseconds after which a worker need not look sooner: all of them together look 100 times a
-- second, so that what nobody was told of is found soon by somebody. Workers are known to shard 0.
local function rest()
  local alive = redis.call('ZCOUNT', P .. 'workers', now - ALIVE_MS, '+inf')
  return math.floor(alive * 1000 / LOOKS_PER_SECOND)
end

-- The numbers of the last news, '' where there was none: what follows is news to who waits now.
local function numbers()
  local found = {}
  for place = FIRST_TOPIC, #ARGV do
    found[#found + 1] = redis.call('GET', P .. 'news:' .. ARGV[place]) or ''
  end
  return found
end

-- ── the claim ────────────────────────────────────────────────────────────────────────────────

if redis.call('ZSCORE', P .. 'requests', nonce)
  or redis.call('HEXISTS', P .. 'claimed', nonce) == 1 then
  return { 'repeated' }
end
claim.weighted = redis.call('EXISTS', P .. 'tenant') == 1
claim.progressed = redis.call('EXISTS', P .. 'progress') == 1
local queues, by_name = {}, {}
for place = 1, queue_count do
  local name = ARGV[FIRST_QUEUE + 2 * place - 2]
  if not by_name[name] then
    by_name[name] = open_queue(name)
    queues[#queues + 1] = by_name[name]
  end
end
for pass = 1, 2 do
  for place = 1, queue_count do
    local queue = by_name[ARGV[FIRST_QUEUE + 2 * place - 2]]
    if claim.room > 0 and #queue.bands > 0 then
      if not queue.lines then
        line_up(queue)
      end
      local quota = tonumber(ARGV[FIRST_QUEUE + 2 * place - 1])
      hand_out(queue, pass == 1 and math.min(quota, claim.room) or claim.room)
    end
  end
end
local answer, count = { 'claimed', '', 0, {} }, 0
for _, queue in ipairs(queues) do
  for _, line in ipairs(queue.lines or {}) do
    write_line(queue, line)
  end
  if #queue.members > 0 then
    write_jobs(queue, answer)
    count = count + #queue.members
  end
end
if count > 0 then
  write_waits()
  note_request(count)
end
answer[2] = poll_after(queues)
if answer[2] ~= 0 then
  answer[3], answer[4] = rest(), numbers()
end
return answer
