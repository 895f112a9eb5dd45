-- change: do what an operator asks to jobs, each as the table of the action says: model/changes.py.
-- KEYS  1 shard
-- ARGV  1 clock  2 table: the letter of the effect for each situation  3 mark without its time
--       4 reason  5… ids, each once
-- RETURNS  per id: the number of the situation in which it was found, or -1
-- TOUCHES  job, run (reads), hold, cancel, progress, log:<id>, attempts:<id>, ended:<state>, lanes, the
--          turns of these jobs; their runs and schedules; for those that go page:<n> (reads), gone,
--          removed, key:…, keys. Bound: 100 ids, and the keys that were made together with them.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/requirement.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua
--@include lib/cancelling.lua
--@include lib/removal.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local effects, mark, reason = ARGV[2], mark_at(ARGV[3], now), ARGV[4]
local FIRST_ID = 5
-- In the order of JobState; R is a job that says W and is running.
local NUMBERS = { B = 0, W = 8, R = 16, S = 24, D = 32, C = 40, E = 48 }
-- Jobs that come into turns or leave them, those that end, and pages of those that go.
local entering, leaving, cancelled, removed = {}, {}, {}, {}

-- Whether these jobs run, are held, are to be cancelled; in the order of the ids, false where not.
local function marks(hash)
  return #ARGV >= FIRST_ID and redis.call('HMGET', P .. hash, unpack(ARGV, FIRST_ID)) or {}
end

local runs, holds, cancels = marks('run'), marks('hold'), marks('cancel')

local function situation(value, nth)
  local state = job_state(value)
  if state == 'W' and runs[nth] then
    state = 'R'
  end
  return NUMBERS[state] + (holds[nth] and 4 or 0) + (cancels[nth] and 2 or 0)
    + (job_due(value) <= now and 1 or 0)
end

-- A job is to wait in its turn, due then.
local function enter(id, value, due)
  local turn = turn_among(entering, job_lane(value), job_tenant(value))
  join_turn(turn, due, member_of(job_seq(value), id))
end

-- The attempt that succeeded stands in the job alone; a new life overwrites it.
local function keep_success(id, job)
  redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt({
    generation = job.generation, lease = job.lease, number = job.attempt + 1,
    claimed = job.claimed, finished = job.finished, nonce = job.nonce, worker = job.worker,
    outcome = 'succeeded', error = '',
  }))
end

-- Same id and place in the order of arrival, due now, counters at zero, `lives` generations later:
-- 1 for a replay, 0 for the retry of a dead job, whose progress stays to be seen.
local function run_again(id, lives)
  local value = redis.call('GET', job_key(P, id))
  local job = unpack_job(value)
  if job.state == 'S' then
    keep_success(id, job)
  end
  redis.call('ZREM', P .. 'ended:' .. STATES[job.state], id)
  redis.call('HDEL', P .. 'hold', id)
  redis.call('HDEL', P .. 'cancel', id)
  if lives > 0 then
    redis.call('HDEL', P .. 'progress', id)
  end
  local lane = lane_of(P, job.lane)
  local base = parts_of(lane.requirement)
  if base ~= lane.requirement then
    job.lane = find_lane(P, lane.queue, lane.level, lane.type, base)
  end
  job.state, job.due, job.generation = 'W', now, job.generation + lives
  job.attempt, job.crashes, job.losses, job.suspect, job.held = 0, 0, 0, false, false
  job.finished, job.claimed, job.handout, job.worker, job.error = 0, 0, 0, '', ''
  job.reason, job.result, job.note = nil, nil, nil
  local renewed = pack_job(job)
  redis.call('SET', job_key(P, id), renewed)
  enter(id, renewed, now)
  if job.schedule then
    tell_schedule(P, id, value, 'W', now)
  end
end

-- Per letter what is done to a job: its id, the beginning of its value, whether it waits, or is held.
local carry_out = {
  ['-'] = function() end,
  c = function(id)
    cancelled[#cancelled + 1] = id
  end,
  a = function(id)
    redis.call('HSET', P .. 'cancel', id, mark)
  end,
  h = function(id, value, waits)
    redis.call('HSET', P .. 'hold', id, mark)
    if waits then
      local turn = turn_among(leaving, job_lane(value), job_tenant(value))
      table.insert(turn.jobs, member_of(job_seq(value), id))
    end
  end,
  u = function(id, value, waits)
    redis.call('HDEL', P .. 'hold', id)
    if waits then
      enter(id, value, job_due(value))
    end
  end,
  d = function(id, value, _, held)
    if not held then
      enter(id, value, now)
    end
    redis.call('SETRANGE', job_key(P, id), JOB_DUE - 1, struct.pack('<I8', now))
  end,
  g = function(id)
    run_again(id, 0)
  end,
  r = function(id)
    run_again(id, 1)
  end,
  x = function(id, value)
    remove_job(P, id, value, removed)
  end,
  e = function(id, value)
    remove_keys(P, id, value)
    remove_job(P, id, value, removed)
  end,
}

local numbers = {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = brief(P, id)
  local nth = place - FIRST_ID + 1
  local number = value and situation(value, nth) or -1
  if value then
    local waits = number >= NUMBERS.W and number < NUMBERS.R
    carry_out[string.sub(effects, number + 1, number + 1)](id, value, waits, holds[nth])
  end
  numbers[#numbers + 1] = number
end
enter_jobs(P, entering, now)
leave_jobs(P, leaving, now)
end_cancelled(P, cancelled, mark, reason, now)
note_removed(P, removed)
return numbers
