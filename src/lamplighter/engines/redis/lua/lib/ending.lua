-- ending: what a job becomes when its claim is over. After keys, record, attempt, turns,
-- requirement and occurrence.
-- verbs/settle.py packs what follows (a `Next` of model/lifecycle.py) as one text:
--   state c1, flags B, delay I8, attempt I4, crashes I4, losses I4, lengths of reason, result, note,
--   error and version, each I4; these parts
-- flags: 1 suspect, 4 has a result, 8 a reason, 16 a note, 32 a version. No error is an empty one.
--
-- An attempt that succeeded stands in the job alone; all others that are kept are in attempts:<id>.

local ENDED = { S = 'succeeded', D = 'dead', C = 'cancelled', E = 'expired' }

-- Read what follows from a place in a text; gives it and the place behind it.
local function read_next(text, at)
  local state, flags, delay, attempt, crashes, losses, reason, result, note, error_, version, place =
    struct.unpack('<c1BI8I4I4I4I4I4I4I4I4', text, at)
  local function part(length, flag)
    local found = string.sub(text, place, place + length - 1)
    place = place + length
    if flag == 0 or bit.band(flags, flag) ~= 0 then
      return found
    end
    return nil
  end
  local following = {
    state = state, delay = delay, attempt = attempt, crashes = crashes, losses = losses,
    suspect = bit.band(flags, 1) ~= 0,
  }
  following.reason, following.result = part(reason, 8), part(result, 4)
  following.note, following.error = part(note, 16), part(error_, 0)
  following.version = part(version, 32)
  return following, place
end

-- Suspects, and jobs that only some versions take, wait in lanes of their own: see
-- `next_requirement` in model/job.py.
local function sister_lane(P, number, suspect, version)
  local lane = lane_of(P, number)
  local base, kept, alone = parts_of(lane.requirement)
  local requirement = requirement_of(base, version or kept, suspect or alone)
  if requirement == lane.requirement then
    return number
  end
  return find_lane(P, lane.queue, lane.level, lane.type, requirement)
end

-- Keep an attempt that failed, or that ended the job without a success.
local function keep_attempt(P, id, job, number, outcome, history, error_, now)
  if job.state == 'S' or job.state == 'W' and not history then
    return
  end
  if job.state == 'C' and not history then
    outcome = 'cancelled'  -- given back, but nobody will take it again
  end
  redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt(
    job.generation, job.lease, number, job.claimed, now, job.nonce, job.worker, outcome, error_))
end

-- Write all but the value itself, which is given back: what the job becomes, its attempt, its turn.
local function end_claim(P, id, value, run, following, outcome, history, now)
  local job = unpack_job(value)
  local number = job.attempt + 1
  job.lease, job.nonce, job.lease_ms, job.claimed, job.handout, job.worker = unpack_run(run)
  job.state, job.suspect = following.state, following.suspect
  job.attempt, job.crashes, job.losses = following.attempt, following.crashes, following.losses
  job.reason, job.result, job.note = following.reason, following.result, following.note
  if job.state == 'W' then
    job.due = now + following.delay
    if following.error ~= '' then
      job.error = following.error
    end
    if job.suspect or following.version then
      job.lane = sister_lane(P, job.lane, job.suspect, following.version)
    end
    if redis.call('HEXISTS', P .. 'hold', id) == 0 then
      enter(P, job.lane, job.tenant, job.due, job.seq, id, now)
    end
  else
    job.finished, job.error = now, following.error
    redis.call('ZADD', P .. 'ended:' .. ENDED[job.state], now, id)
    redis.call('HDEL', P .. 'hold', id)
    if job.schedule then
      tell_schedule(P, id, value, job.state, now)
    end
  end
  if job.state ~= 'C' then
    redis.call('HDEL', P .. 'cancel', id)
  end
  keep_attempt(P, id, job, number, outcome, history, following.error, now)
  return pack_job(job)
end
