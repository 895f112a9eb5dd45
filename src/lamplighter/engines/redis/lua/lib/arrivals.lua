-- arrivals: the jobs that a call brings with it, and how they are stored. After clock, keys, record,
-- mark, turns and moves. Whoever includes this is given them in this way:
-- ARGV  1 clock  2 ids, joined  3 turn of each job as <I2, or '' for the first  4 when each is due
--       as <i8, a delay or minus an instant, or '' for now  5 flags of each, a byte, or '' for none
--       6 mark of those that are held  7 how many lanes, turns and idempotency keys, as <I2I2I2
--       8… lanes; then per turn number of its lane and tenant; then bodies of the jobs; then per
--       key number of its job, scope, key, body; then whatever the script wants, from BEHIND on

local P, now = KEYS[1], now_ms(ARGV[1])
local ids, turn_of, due_of, flags_of, mark = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lane_count, turn_count, key_count = struct.unpack('<I2I2I2', ARGV[7])
local FIRST_TURN = 8 + lane_count
local BEFORE_BODIES = FIRST_TURN + 2 * turn_count - 1
local ID, PAGE = 26, 256

local count = #ids / ID
local FIRST_KEY = BEFORE_BODIES + count + 1
local BEHIND = FIRST_KEY + 4 * key_count
local unpack_number, pack, sub, byte = struct.unpack, struct.pack, string.sub, string.byte

-- The ids and keys of the jobs, in their order. New texts are what a script spends most time on.
local id_at, key_at = {}, {}
for place = 1, count do
  local id = sub(ids, place * ID - ID + 1, place * ID)
  id_at[place], key_at[place] = id, job_key(P, id)
end

-- The numbers of the lanes, in their order.
local function read_lanes()
  local numbers = redis.call('HMGET', P .. 'lanes', unpack(ARGV, 8, FIRST_TURN - 1))
  for place, number in ipairs(numbers) do
    numbers[place] = number and tonumber(number) or make_lane(P, ARGV[7 + place])
  end
  return numbers
end

local function due_at(place)
  local given = unpack_number('<i8', due_of, 8 * place - 7)
  return given >= 0 and now + given or math.max(now, -given)
end

-- The head of a job without its sequence number, which differs: what is before and after it. The
-- same for most jobs of a call.
local last_lane, last_flags, last_due, before, after

local function split_head(lane, flags, due)
  if lane ~= last_lane or due ~= last_due or flags ~= last_flags then
    local text = pack(JOB_HEAD, 'W', flags, lane, 0, due, now)
    last_lane, last_flags, last_due = lane, flags, due
    before, after = sub(text, 1, JOB_SEQ - 1), sub(text, JOB_DUE)
  end
end

-- Build the values of the jobs at these places, in the order of their sequence numbers.
local function build(places, first, lanes, turns)
  local values, held = {}, {}
  local due, flags, number = now, 0, 1
  for n, place in ipairs(places) do
    local id, seq = id_at[place], first + n
    if turn_of ~= '' then
      number = unpack_number('<I2', turn_of, 2 * place - 1)
    end
    if due_of ~= '' then
      due = due_at(place)
    end
    if flags_of ~= '' then
      flags = byte(flags_of, place)
    end
    local turn = turns[number]
    if not turn then
      local at = FIRST_TURN + 2 * (number - 1)
      turn = empty_turn(lanes[tonumber(ARGV[at])], ARGV[at + 1])
      turns[number] = turn
    end
    split_head(turn.lane, flags, due)
    values[2 * n - 1] = key_at[place]
    values[2 * n] = before .. pack('<I8', seq) .. after .. ARGV[BEFORE_BODIES + place]
    if flags < JOB_HELD_FLAG then
      join_turn(turn, due, member_of(seq, id))
    else
      held[#held + 1] = id
      held[#held + 1] = mark_at(mark, now)
    end
  end
  return values, held
end

-- Enter ids into the index of all jobs, at the places of their sequence numbers.
local function index(text, first)
  local done, total = 0, #text / ID
  while done < total do
    local seq = first + 1 + done
    local some = math.min(total - done, PAGE - seq % PAGE)
    redis.call('SETRANGE', P .. 'page:' .. math.floor(seq / PAGE), seq % PAGE * ID,
      sub(text, done * ID + 1, (done + some) * ID))
    done = done + some
  end
end

local function store(places)
  local lanes, turns = read_lanes(), {}
  local first = redis.call('INCRBY', P .. 'seq', #places) - #places
  local values, held = build(places, first, lanes, turns)
  redis.call('MSET', unpack(values))
  if #held > 0 then
    redis.call('HSET', P .. 'hold', unpack(held))
  end
  local filled = {}
  for number = 1, turn_count do
    if turns[number] and turns[number].due then
      filled[#filled + 1] = turns[number]
    end
  end
  enter_jobs(P, filled, now)
  local text = ids
  if #places < count then
    local some = {}
    for n, place in ipairs(places) do
      some[n] = id_at[place]
    end
    text = table.concat(some)
  end
  index(text, first)
end

-- Whether all ids are new, and each is there once.
local function all_new()
  local seen = {}
  for _, id in ipairs(id_at) do
    if seen[id] then
      return false
    end
    seen[id] = true
  end
  return redis.call('EXISTS', unpack(key_at)) == 0
end
