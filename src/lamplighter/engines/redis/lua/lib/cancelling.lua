-- cancelling: end a job that waits, ask one that runs. After keys, record, turns, states and
-- occurrence.

local function end_cancelled(P, id, value, mark, reason, now)
  local job = unpack_job(value)
  if job.state == 'W' and not is_held(P, id) then
    leave(P, job.lane, job.tenant, job.due, job.seq, id, now)
  end
  job.state, job.finished, job.reason = 'C', now, reason
  redis.call('SET', job_key(P, id), pack_job(job))
  redis.call('HDEL', P .. 'hold', id)
  redis.call('HSET', P .. 'cancel', id, mark)
  redis.call('ZADD', P .. 'ended:cancelled', now, id)
  if job.schedule then
    tell_schedule(P, id, value, 'C', now)
  end
end

-- Gives what became of the wish, and the job's state after it, '' where there is none.
local function cancel_job(P, id, mark, reason, now)
  local value = redis.call('GET', job_key(P, id))
  if not value then
    return 'unknown', ''
  end
  local state = string.sub(value, 1, 1)
  if state == 'W' and is_running(P, id) then
    local asked = redis.call('HSETNX', P .. 'cancel', id, mark) == 1
    return asked and 'requested' or 'already', 'running'
  elseif TERMINAL[state] then
    return state == 'C' and 'already' or 'conflict', STATES[state]
  end
  end_cancelled(P, id, value, mark, reason, now)
  return 'done', 'cancelled'
end
