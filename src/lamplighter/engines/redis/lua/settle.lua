-- settle: write what each claim came to; refuse what is no longer its own.
-- KEYS  1 shard
-- ARGV  1 clock  2… per settlement: id; its fence and what it came to, in one text; its journal
--       or ''. What it came to, from 21 on: 'S', flags B (4 result, 16 note), length of the result
--       I4, result, note; or 'O', flags B (1 only if the lease has ended, 2 keep its history, 4
--       something else if a cancel was requested, 8 only without a start mark), length of the
--       outcome B, outcome, what follows, what else
-- RETURNS  per settlement 'done', 'already', 'lost', 'renewed' or 'started', a space, and the job's
--          state if it is known
-- TOUCHES  job, run, lease:<ms>, claimed, hold, cancel, ended:<state>, attempts:<id>, progress,
--          log:<id>, the turns of jobs that wait again; runs and schedules of jobs that have ended.
--          Bound: 100 settlements.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/fence.lua
--@include lib/journal.lua
--@include lib/turns.lua
--@include lib/requirement.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua

local P, now = KEYS[1], now_ms(ARGV[1])

local count = (#ARGV - 1) / 3
local ids, keys = {}, {}
for n = 1, count do
  ids[n] = ARGV[3 * n - 1]
  keys[n] = job_key(P, ids[n])
end
local given_runs = redis.call('HMGET', P .. 'run', unpack(ids))
local given_values = redis.call('MGET', unpack(keys))
local runs, values = {}, {}
for n = 1, count do
  runs[ids[n]], values[ids[n]] = given_runs[n], given_values[n]
end

local packed_now = struct.pack('<I8', now)
local sub, number = string.sub, struct.unpack
-- Claims that are over, what is written, and where their jobs go: into turns, or to an end.
local stopped, their_runs, written, entering = {}, {}, {}, {}
local ended, old_values, ends = {}, {}, {}

-- A claim is over; its job gets a new value, and what it was before is told to its end.
local function stop(n, id, run, value, state)
  local place = #stopped + 1
  stopped[place], their_runs[place] = id, run
  written[2 * place - 1], written[2 * place] = keys[n], value
  if state ~= 'W' then
    local nth = #ended + 1
    ended[nth], old_values[nth], ends[nth] = id, values[id], state
  end
  runs[id], values[id] = false, value
end

-- ── success ──────────────────────────────────────────────────────────────────────────────────

-- What a plain success came to. Those of a batch are often the same.
local last_text, last_result, last_note

local function settle_success(n, id, run, text)
  if text ~= last_text then
    local flags, size, at = number('<BI4', text, 22)
    last_text = text
    last_result = bit.band(flags, JOB_RESULT_FLAG) ~= 0 and sub(text, at, at + size - 1) or nil
    last_note = bit.band(flags, JOB_NOTE_FLAG) ~= 0 and sub(text, at + size) or nil
  end
  stop(n, id, run, succeeded(values[id], run, packed_now, last_result, last_note), 'S')
  return 'done succeeded'
end

-- ── all else ─────────────────────────────────────────────────────────────────────────────────

-- Suspects, and jobs that only some versions take, wait in lanes of their own: see
-- `next_requirement` in model/job.py.
local function sister_lane(lane_number, suspect, version)
  local lane = lane_of(P, lane_number)
  local base, kept, alone = parts_of(lane.requirement)
  local requirement = requirement_of(base, version or kept, suspect or alone)
  if requirement == lane.requirement then
    return lane_number
  end
  return find_lane(P, lane.queue, lane.level, lane.type, requirement)
end

-- Keep an attempt that failed, or that ended the job without a success. One that succeeded stands in
-- the job alone.
local function keep_attempt(id, job, nth, outcome, history, error_)
  if job.state == 'S' or job.state == 'W' and not history then
    return
  end
  if job.state == 'C' and not history then
    outcome = 'cancelled'  -- given back, but nobody will take it again
  end
  redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt({
    generation = job.generation, lease = job.lease, number = nth, claimed = job.claimed,
    finished = now, nonce = job.nonce, worker = job.worker, outcome = outcome, error = error_,
  }))
end

-- What a job becomes, as value; its attempt is kept.
local function next_value(id, run, following, outcome, history)
  local job, claim = unpack_job(values[id]), unpack_run(run)
  local nth = job.attempt + 1
  job.lease, job.nonce, job.claimed = claim.lease, claim.nonce, claim.claimed
  job.handout, job.worker = claim.handout, claim.worker
  job.state, job.suspect = following.state, following.suspect
  job.attempt, job.crashes, job.losses = following.attempt, following.crashes, following.losses
  job.reason, job.result, job.note = following.reason, following.result, following.note
  if job.state ~= 'W' then
    job.finished, job.error = now, following.error
  else
    job.due = now + following.delay
    if following.error ~= '' then
      job.error = following.error
    end
    if job.suspect or following.version then
      job.lane = sister_lane(job.lane, job.suspect, following.version)
    end
    if not is_held(P, id) then
      join_turn(turn_among(entering, job.lane, job.tenant), job.due, member_of(job.seq, id))
    end
    redis.call('HDEL', P .. 'cancel', id)
  end
  keep_attempt(id, job, nth, outcome, history, following.error)
  return pack_job(job)
end

-- Whether a lease goes on although somebody thought it had ended.
local function goes_on(id, run)
  local lease = P .. 'lease:' .. string.format('%.0f', run_lease_ms(run))
  return tonumber(redis.call('ZSCORE', lease, id)) > now
end

local function settle_other(n, id, run, text)
  local flags, length, at = number('<BB', text, 22)
  if bit.band(flags, 1) ~= 0 and goes_on(id, run) then
    return 'renewed running'
  end
  if bit.band(flags, 8) ~= 0 and run_started(run) == 1 then
    return 'started running'
  end
  local outcome = sub(text, at, at + length - 1)
  local following, place = unpack_next(text, at + length)
  if bit.band(flags, 4) ~= 0 and redis.call('HEXISTS', P .. 'cancel', id) == 1 then
    following = unpack_next(text, place)
  end
  local value = next_value(id, run, following, outcome, bit.band(flags, 2) ~= 0)
  stop(n, id, run, value, following.state)
  return 'done ' .. STATES[following.state]
end

-- ── the settle ───────────────────────────────────────────────────────────────────────────────

-- Why a settlement was not written.
local function refusal(id, text)
  local value = values[id]
  if not value then
    return 'lost '
  end
  if runs[id] then
    return 'lost running'
  end
  local same = job_nonce(value) == sub(text, 5, 20) and job_lease(value) == number('<I4', text)
  return (same and 'already ' or 'lost ') .. STATES[job_state(value)]
end

local answers = {}
for n = 1, count do
  local id, text, journal = ids[n], ARGV[3 * n], ARGV[3 * n + 1]
  local run = runs[id]
  if holds(run, text) then
    local settle = sub(text, 21, 21) == 'S' and settle_success or settle_other
    answers[n] = settle(n, id, run, text)
    if journal ~= '' and not runs[id] then
      write_journal(P, id, number('<I4', text), journal)
    end
  else
    answers[n] = refusal(id, text)
  end
end
if #stopped > 0 then
  stop_jobs(P, stopped, their_runs)
  redis.call('MSET', unpack(written))
  if #entering > 0 then
    enter_jobs(P, entering, now)
  end
  if #ended > 0 then
    end_jobs(P, ended, old_values, ends, now)
  end
end
return answers
