-- ending: what a job becomes when its claim is over. After keys, record, turns,
-- requirement and occurrence.
--
-- An attempt that succeeded stands in the job alone; all others that are kept are in attempts:<id>.

local ENDED = { S = 'succeeded', D = 'dead', C = 'cancelled', E = 'expired' }

--@layout next

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
  redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt({
    generation = job.generation, lease = job.lease, number = number, claimed = job.claimed,
    finished = now, nonce = job.nonce, worker = job.worker, outcome = outcome, error = error_,
  }))
end

-- Write all but the value itself, which is given back: what the job becomes, its attempt, its turn.
local function end_claim(P, id, value, run, following, outcome, history, now)
  local job = unpack_job(value)
  local number = job.attempt + 1
  local claim = unpack_run(run)
  job.lease, job.nonce, job.claimed = claim.lease, claim.nonce, claim.claimed
  job.handout, job.worker = claim.handout, claim.worker
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
