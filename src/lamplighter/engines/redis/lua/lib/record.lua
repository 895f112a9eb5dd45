-- record: the value of a job, and that of its running claim. records.py is the other side.
--
-- A job is one string, little-endian:
--   1  state c1, flags B, lane I4, seq I8, due I8, created I8
--  31  cost I4, generation I4, attempt I4, crashes I4, losses I4
--  51  finished I8, lease I4, claimed I8, handout I8, nonce c16
--  95  lengths: tenant I2, args I4, extras I4, schedule I2, error I4, worker I2, reason I4,
--      result I4, note I2
-- 123  these parts
-- state: W waiting or running, B blocked, S succeeded, D dead, C cancelled, E expired.
-- flags: 1 suspect, 2 at most once, 4 has a result, 8 a reason, 16 a note, 32 a schedule, 64 held
-- when it was submitted. A number that is not known is 0, a text that is not known is empty.
--
-- A running claim is one string: lease I4, claimed I8, handout I8, nonce c16, lease_ms I8, start
-- mark B (1: the handler may have been called), worker.
-- Its first 36 bytes are those of the job from 59 on, so that a settle copies them.

local FIXED = '<c1BI4I8I8I8I4I4I4I4I4I8I4I8I8c16I2I4I4I2I4I2I4I4I2'
local NO_NONCE = string.rep('\0', 16)

-- The first part of a new job; what Python has packed follows it.
local function pack_head(state, flags, lane, seq, due, created)
  return struct.pack('<c1BI4I8I8I8', state, flags, lane, seq, due, created)
end

-- Gives state, flags, lane, seq, due, created.
local function head(value)
  local state, flags, lane, seq, due, created = struct.unpack('<c1BI4I8I8I8', value)
  return state, flags, lane, seq, due, created
end

local function args_size(value)
  return (struct.unpack('<I4', value, 97))
end

local function cost(value)
  return (struct.unpack('<I4', value, 31))
end

-- The number of the last claim that was written down: a running one is not, it stands in `run`.
local function last_lease(value)
  return (struct.unpack('<I4', value, 59))
end

local function last_nonce(value)
  return string.sub(value, 79, 94)
end

local function tenant_of(value)
  return string.sub(value, 123, 122 + struct.unpack('<I2', value, 95))
end

-- Gives everything by name. `result`, `reason`, `note` and `schedule` are nil where there is none;
-- `suspect`, `at_most_once` and `held` are true or false.
local function unpack_job(value)
  local state, flags, lane, seq, due, created, cost_, generation, attempt, crashes, losses,
    finished, lease, claimed, handout, nonce, tenant, args, extras, schedule, error_, worker,
    reason, result, note = struct.unpack(FIXED, value)
  local place = 123
  local function part(length)
    local text = string.sub(value, place, place + length - 1)
    place = place + length
    return text
  end
  local function has(flag)
    return bit.band(flags, flag) ~= 0
  end
  local job = {
    state = state, lane = lane, seq = seq, due = due, created = created, cost = cost_,
    generation = generation, attempt = attempt, crashes = crashes, losses = losses,
    finished = finished, lease = lease, claimed = claimed, handout = handout, nonce = nonce,
    suspect = has(1), at_most_once = has(2), held = has(64),
  }
  job.tenant, job.args, job.extras, job.schedule = part(tenant), part(args), part(extras), part(schedule)
  job.error, job.worker, job.reason, job.result = part(error_), part(worker), part(reason), part(result)
  job.note = part(note)
  job.schedule = has(32) and job.schedule or nil
  job.result = has(4) and job.result or nil
  job.reason = has(8) and job.reason or nil
  job.note = has(16) and job.note or nil
  return job
end

-- The value of a job as `unpack_job` gives it; a nonce may be empty.
local function pack_job(job)
  local flags = (job.suspect and 1 or 0) + (job.at_most_once and 2 or 0) + (job.result and 4 or 0)
    + (job.reason and 8 or 0) + (job.note and 16 or 0) + (job.schedule and 32 or 0)
    + (job.held and 64 or 0)
  local schedule, reason = job.schedule or '', job.reason or ''
  local result, note = job.result or '', job.note or ''
  local nonce = job.nonce == '' and NO_NONCE or job.nonce
  return struct.pack(
    FIXED, job.state, flags, job.lane, job.seq, job.due, job.created, job.cost, job.generation,
    job.attempt, job.crashes, job.losses, job.finished, job.lease, job.claimed, job.handout, nonce,
    #job.tenant, #job.args, #job.extras, #schedule, #job.error, #job.worker, #reason, #result, #note
  ) .. job.tenant .. job.args .. job.extras .. schedule .. job.error .. job.worker .. reason
    .. result .. note
end

-- The value of a job whose claim `run` has succeeded; `finished` is packed as '<I8', because a
-- batch has it in common. Error and reason go; what the job was submitted with stays.
local function succeeded(value, run, finished, result, note)
  local flags = bit.band(string.byte(value, 2), 99)  -- all but result, reason and note
  local tenant, args, extras, schedule = struct.unpack('<I2I4I4I2', value, 95)
  local worker = string.sub(run, 46)
  if result then
    flags = flags + 4
  end
  if note then
    flags = flags + 16
  end
  return 'S' .. string.char(flags) .. string.sub(value, 3, 50) .. finished
    .. string.sub(run, 1, 36) .. string.sub(value, 95, 106)
    .. struct.pack('<I4I2I4I4I2', 0, #worker, 0, result and #result or 0, note and #note or 0)
    .. string.sub(value, 123, 122 + tenant + args + extras + schedule)
    .. worker .. (result or '') .. (note or '')
end

-- A claim that has not started yet.
local function pack_run(lease, claimed, handout, nonce, lease_ms, worker)
  return struct.pack('<I4I8I8c16I8B', lease, claimed, handout, nonce, lease_ms, 0) .. worker
end

-- Gives lease, nonce, lease_ms, claimed, handout, worker.
local function unpack_run(run)
  local lease, claimed, handout, nonce, lease_ms = struct.unpack('<I4I8I8c16I8', run)
  return lease, nonce, lease_ms, claimed, handout, string.sub(run, 46)
end

local function is_started(run)
  return string.byte(run, 45) == 1
end

-- Set the start mark of a running claim.
local function mark_start(P, id, run)
  redis.call('HSET', P .. 'run', id, string.sub(run, 1, 44) .. '\1' .. string.sub(run, 46))
end

-- The same claim under a lease of another length, given as '<I8'.
local function with_length(run, lease_ms)
  return string.sub(run, 1, 36) .. lease_ms .. string.sub(run, 45)
end
