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
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/ending.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local STATES = {
  W = 'waiting', B = 'blocked', S = 'succeeded', D = 'dead', C = 'cancelled', E = 'expired',
}

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

local has_cancels = redis.call('EXISTS', P .. 'cancel') == 1
local has_holds = redis.call('EXISTS', P .. 'hold') == 1
local packed_now, due_now = struct.pack('<I8', now), string.format('%.0f', now)
local sub, number = string.sub, struct.unpack
local ended, written, leases, nonces, succeeded_ids = {}, {}, {}, {}, {}

-- Take a claim out of the running ones; its job gets a new value.
local function stop(n, id, run, value)
  runs[id], values[id] = false, value
  local place = #ended + 1
  ended[place] = id
  written[2 * place - 1], written[2 * place] = keys[n], value
  local lease_ms, nonce = run_lease_ms(run), run_nonce(run)
  local others = leases[lease_ms]
  if not others then
    others = {}
    leases[lease_ms] = others
  end
  others[#others + 1] = id
  nonces[nonce] = (nonces[nonce] or 0) + 1
end

-- What a plain success came to. Those of a batch are often the same.
local last_text, last_result, last_note

local function settle_success(n, id, run, text)
  if text ~= last_text then
    local flags, size, at = number('<BI4', text, 22)
    last_text = text
    last_result = bit.band(flags, JOB_RESULT_FLAG) ~= 0 and sub(text, at, at + size - 1) or nil
    last_note = bit.band(flags, JOB_NOTE_FLAG) ~= 0 and sub(text, at + size) or nil
  end
  local value = values[id]
  stop(n, id, run, succeeded(value, run, packed_now, last_result, last_note))
  if bit.band(job_flags(value), JOB_SCHEDULE_FLAG) ~= 0 then
    tell_schedule(P, id, value, 'S', now)
  end
  local place = #succeeded_ids
  succeeded_ids[place + 1], succeeded_ids[place + 2] = due_now, id
  if has_cancels then
    redis.call('HDEL', P .. 'cancel', id)
  end
  if has_holds then
    redis.call('HDEL', P .. 'hold', id)
  end
  return 'done succeeded'
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
  if bit.band(flags, 4) ~= 0 and has_cancels and redis.call('HEXISTS', P .. 'cancel', id) == 1 then
    following = unpack_next(text, place)
  end
  local history = bit.band(flags, 2) ~= 0
  stop(n, id, run, end_claim(P, id, values[id], run, following, outcome, history, now))
  return 'done ' .. STATES[following.state]
end

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
  return (same and 'already ' or 'lost ') .. STATES[sub(value, 1, 1)]
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

if #ended > 0 then
  redis.call('HDEL', P .. 'run', unpack(ended))
  redis.call('MSET', unpack(written))
  for lease_ms, some in pairs(leases) do
    redis.call('ZREM', P .. 'lease:' .. string.format('%.0f', lease_ms), unpack(some))
  end
  for nonce, some in pairs(nonces) do
    if redis.call('HINCRBY', P .. 'claimed', nonce, -some) <= 0 then
      redis.call('HDEL', P .. 'claimed', nonce)
    end
  end
  if #succeeded_ids > 0 then
    redis.call('ZADD', P .. 'ended:succeeded', unpack(succeeded_ids))
  end
end
return answers
