-- claim: hand out due jobs, fairly, in the order of model/stride.py.
-- KEYS  1 shard
-- ARGV  1 clock  2 nonce  3 worker  4 how many jobs at most  5 lease in ms  6 bytes of arguments
--       7, 8, 9 how many queues, types and requirements  10… per queue name and quota; types;
--       requirements; topics that will be waited for if nothing due is left
-- RETURNS  'repeated' if the nonce was used before; otherwise 'claimed', ms until something asked
--          for is due or '', ms that may pass without a look, numbers of the last news of the topics,
--          unless something due was left; then per queue that gave something: its hand-outs before,
--          the lanes, the lane of each job as <I2 or '' for the first, id and value of each job
-- TOUCHES  job (reads), run, lease:<ms>, spans, requests, claimed, progress, handed, bands,
--          share:<band>, waits, the turns of these jobs and those that fall due, 64 a band. Bound:
--          1,000 jobs.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/moves.lua
--@include lib/requests.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local nonce, worker, lease_ms = ARGV[2], ARGV[3], tonumber(ARGV[5])
local room, bytes = math.min(tonumber(ARGV[4]), 1000), tonumber(ARGV[6])
local FIRST_QUEUE = 10
local FIRST_TYPE = FIRST_QUEUE + 2 * tonumber(ARGV[7])
local FIRST_REQUIREMENT = FIRST_TYPE + tonumber(ARGV[8])
local FIRST_TOPIC = FIRST_REQUIREMENT + tonumber(ARGV[9])
local WAKE_LIMIT, MAX_WAIT_MS, STARVED_EVERY = 64, 60000, 10
local ALIVE_MS, LOOKS_PER_SECOND = 60000, 100

--@include lib/line.lua

-- ── what is asked for ────────────────────────────────────────────────────────────────────────

local function names(first, behind)
  local found = {}
  for place = first, behind - 1 do
    found[ARGV[place]] = true
  end
  return found
end

local types = names(FIRST_TYPE, FIRST_REQUIREMENT)
local requirements = names(FIRST_REQUIREMENT, FIRST_TOPIC)

-- The bands of a queue that are asked for, the highest level first.
local function read_bands(queue)
  local numbers, bands, asked = redis.call('SMEMBERS', active_key(P, queue)), {}, {}
  if #numbers == 0 then
    return asked
  end
  local lanes, their_types = redis.call('HMGET', P .. 'lane', unpack(numbers)), {}
  for place, text in ipairs(lanes) do
    lanes[place] = read_lane(numbers[place], text)
    their_types[place] = lanes[place].type
  end
  local settings = redis.call('HMGET', P .. 'type', unpack(their_types))
  for place, lane in ipairs(lanes) do
    local band = bands[lane.band]
    if not band then
      band = { id = lane.band, level = lane.level, lanes = {}, asked = {} }
      bands[lane.band] = band
    end
    band.lanes[#band.lanes + 1] = lane
    if types[lane.type] and requirements[lane.requirement] and not is_held_by(settings[place]) then
      if #band.asked == 0 then
        asked[#asked + 1] = band
      end
      band.asked[#band.asked + 1] = lane
    end
  end
  table.sort(asked, function(one, other) return one.level < other.level end)
  return asked
end

-- A queue as the claim sees it: its bands, and what it has given.
local function open_queue(name)
  local text = redis.call('HGET', P .. 'queue', name)
  local max_wait = text and cjson.decode(text).max_wait or MAX_WAIT_MS
  return {
    name = name, bands = is_held_by(text) and {} or read_bands(name), starving = true,
    before = now - max_wait, ids = {}, runs = {}, jobs = {}, lanes = {}, places = {},
  }
end

-- ── handing out ──────────────────────────────────────────────────────────────────────────────

-- Wake turns of a band whose heads are due: those that have been due longest.
local function wake_band(band)
  local sleepers = {}
  for _, lane in ipairs(band.lanes) do
    local due = redis.call('ZRANGE', P .. 'asleep:' .. lane.number, '-inf', now, 'BYSCORE',
      'LIMIT', 0, WAKE_LIMIT, 'WITHSCORES')
    for place = 1, #due, 2 do
      sleepers[#sleepers + 1] = { lane = lane.number, tenant = due[place], due = due[place + 1] }
    end
  end
  if #sleepers > WAKE_LIMIT then
    table.sort(sleepers, function(one, other) return tonumber(one.due) < tonumber(other.due) end)
  end
  for place = 1, math.min(#sleepers, WAKE_LIMIT) do
    local turn = sleepers[place]
    turn.member = redis.call('ZRANGE', turn_key(P, turn.lane, turn.tenant), 0, 0)[1]
    redis.call('ZREM', P .. 'asleep:' .. turn.lane, turn.tenant)
    wake_turns(P, turn.lane, band.id, { turn })
  end
end

-- Look who stands in line; before anything of a queue is handed out.
local function line_up(queue)
  local ids = {}
  for place, band in ipairs(queue.bands) do
    wake_band(band)
    ids[place] = band.id
  end
  queue.handed = tonumber(redis.call('HGET', P .. 'handed', queue.name) or '0')
  queue.lines = {}
  local clocks = redis.call('HMGET', P .. 'bands', unpack(ids))
  local widths = redis.call('HMGET', P .. 'band_lanes', unpack(ids))
  for place, band in ipairs(queue.bands) do
    queue.lines[place] =
      new_line(band.id, tonumber(clocks[place] or '0'), widths[place] ~= '1', band.asked)
  end
end

-- Whose job is next: mostly the first of the highest level, every tenth time who waited longest.
local function next_turn(queue)
  if queue.starving and (queue.handed + 1) % STARVED_EVERY == 0 then
    local turn = longest_waiting(queue.lines, queue.before)
    if turn then
      return turn, true
    end
    -- Heads only get later while jobs are taken: nobody starves in this claim any more.
    queue.starving = false
  end
  for _, line in ipairs(queue.lines) do
    local turn = first_in_line(line)
    if turn then
      return turn, false
    end
  end
end

local run_end = sub(pack_run({
  lease = 0, claimed = 0, handout = 0, nonce = nonce, lease_ms = lease_ms, started = 0,
  worker = worker,
}), RUN_NONCE)

local function hand_out(queue, quota)
  local ids, jobs, last, numbers = queue.ids, queue.jobs, room - quota, queue.lanes
  while room > last and room > 0 do
    local turn, out_of_turn = next_turn(queue)
    if not turn then
      return
    end
    local member, value = take(turn, out_of_turn)
    local n, id, lane = #ids + 1, sub(member, 12), turn.lane.name
    queue.handed = queue.handed + 1
    ids[n], jobs[2 * n - 1], jobs[2 * n] = id, id, value
    queue.runs[n] = struct.pack(RUN_HEAD, job_lease(value) + 1, now, queue.handed) .. run_end
    if not numbers[lane] then
      numbers[#numbers + 1] = lane
      numbers[lane] = struct.pack('<I2', #numbers)
    end
    queue.places[n] = numbers[lane]
    bytes = bytes - job_args_size(value)
    room = bytes > 0 and room - 1 or 0
  end
end

-- ── writing ──────────────────────────────────────────────────────────────────────────────────

local function add(list, one, other)
  list[#list + 1] = one
  list[#list + 1] = other
end

-- What tenants have waiting less than before, by their names.
local left = {}

-- Write where the touched turns of a lane stand now: in line, asleep, or nowhere.
local function write_lane(queue, lane)
  local line, gone, heads, old_heads, asleep, ended = {}, {}, {}, {}, {}, {}
  for _, turn in ipairs(lane.touched) do
    local due, member = next_job(turn)
    old_heads[#old_heads + 1] = turn.jobs[1] .. turn.tenant
    if not member then
      ended[#ended + 1] = turn.key
    elseif turn.taken > 0 then
      redis.call('ZREMRANGEBYRANK', turn.key, 0, turn.taken - 1)
    end
    if member and due <= now then
      add(line, turn.place, turn.tenant)
      add(heads, turn.jobs[2 * turn.taken + 2], member .. turn.tenant)
    else
      gone[#gone + 1] = turn.tenant
      if member then
        add(asleep, due, turn.tenant)
      end
    end
    if turn.taken > 0 then
      left[turn.tenant] = (left[turn.tenant] or 0) - turn.taken
    end
  end
  for _, turn in ipairs(lane.stale) do
    if turn.taken == 0 and turn.where ~= 'out' then
      add(line, turn.place, turn.tenant)
    end
  end
  send('ZREM', P .. 'line:' .. lane.number, gone)
  send('ZADD', P .. 'line:' .. lane.number, line)
  send('ZREM', P .. 'heads:' .. lane.number, old_heads)
  send('ZADD', P .. 'heads:' .. lane.number, heads)
  send('ZADD', P .. 'asleep:' .. lane.number, asleep)
  if #ended > 0 then
    redis.call('DEL', unpack(ended))
    tidy_lane(P, lane.number, queue.name)
  end
end

local function write_line(queue, line)
  local times, share = {}, P .. 'share:' .. line.band
  for tenant, time in pairs(line.times) do
    add(times, time, tenant)
  end
  for _, lane in ipairs(line.lanes) do
    if #lane.touched + #lane.stale > 0 then
      write_lane(queue, lane)
    end
  end
  send('ZADD', share, times)
  if #times > 0 and line.clock ~= line.first_clock then
    redis.call('HSET', P .. 'bands', line.band, line.clock)
    -- Virtual times that the clock has passed mean nothing where nobody can stand before them: each
    -- claim removes some. With other lanes somebody may, who has not been rewritten yet.
    local past = line.wide and {}
      or redis.call('ZRANGE', share, '-inf', line.clock, 'BYSCORE', 'LIMIT', 0, #times)
    if #past > 0 then
      redis.call('ZREMRANGEBYRANK', share, 0, #past - 1)
    end
  end
end

-- Milliseconds until something of these queues is due, '' when nothing waits.
local function poll_after(queues)
  local soonest = math.huge
  for _, queue in ipairs(queues) do
    for _, band in ipairs(queue.bands) do
      for _, lane in ipairs(band.asked) do
        for _, where in ipairs({ 'heads:', 'asleep:' }) do
          local first = redis.call('ZRANGE', P .. where .. lane.number, 0, 0, 'WITHSCORES')[2]
          soonest = math.min(soonest, first and tonumber(first) or soonest)
          if soonest <= now then
            return 0
          end
        end
      end
    end
  end
  return soonest < math.huge and soonest - now or ''
end

-- ── the claim ────────────────────────────────────────────────────────────────────────────────

if redis.call('ZSCORE', P .. 'requests', nonce)
  or redis.call('HEXISTS', P .. 'claimed', nonce) == 1 then
  return { 'repeated' }
end
local queues, by_name = {}, {}
for place = FIRST_QUEUE, FIRST_TYPE - 1, 2 do
  local name = ARGV[place]
  if not by_name[name] then
    by_name[name] = open_queue(name)
    queues[#queues + 1] = by_name[name]
  end
end
-- First each queue up to its quota, then whatever there is.
for pass = 1, 2 do
  for place = FIRST_QUEUE, FIRST_TYPE - 1, 2 do
    local queue, quota = by_name[ARGV[place]], tonumber(ARGV[place + 1])
    if room > 0 and #queue.bands > 0 then
      if not queue.lines then
        line_up(queue)
      end
      hand_out(queue, pass == 1 and math.min(quota, room) or room)
    end
  end
end
local answer = { 'claimed', '', 0, {} }
for _, queue in ipairs(queues) do
  for _, line in ipairs(queue.lines or {}) do
    write_line(queue, line)
  end
  if #queue.ids > 0 then
    start_jobs(P, nonce, queue.ids, queue.runs, lease_ms, now)
    redis.call('HSET', P .. 'handed', queue.name, queue.handed)
    add(answer, queue.handed - #queue.ids, queue.lanes)
    add(answer, #queue.lanes == 1 and '' or table.concat(queue.places), queue.jobs)
  end
end
if #answer > 4 then
  count_waiting(P, left)
  note_request(P, nonce, now)
end
answer[2] = poll_after(queues)
if answer[2] ~= 0 then
  -- How long a worker may rest: all of them together look 100 times a second, so that what nobody
  -- was told of is found soon by somebody. Workers are known to shard 0.
  local alive = redis.call('ZCOUNT', P .. 'workers', now - ALIVE_MS, '+inf')
  answer[3] = math.floor(alive * 1000 / LOOKS_PER_SECOND)
  -- The numbers of the last news, '' where there was none: what follows is news to who waits now.
  for place = FIRST_TOPIC, #ARGV do
    table.insert(answer[4], redis.call('GET', P .. 'news:' .. ARGV[place]) or '')
  end
end
return answer
