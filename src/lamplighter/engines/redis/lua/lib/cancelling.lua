-- cancelling: end jobs that wait, ask those that run. After keys, record, turns, states and moves.

-- End jobs that neither run nor have ended. Each value is written before the next is read: they may
-- be large.
local function end_cancelled(P, ids, mark, reason, now)
  local values, states, leaving, marks = {}, {}, {}, {}
  for place, id in ipairs(ids) do
    local value = redis.call('GET', job_key(P, id))
    local job = unpack_job(value)
    if job.state == 'W' and not is_held(P, id) then
      table.insert(turn_among(leaving, job.lane, job.tenant).jobs, member_of(job.seq, id))
    end
    job.state, job.finished, job.reason = 'C', now, reason
    redis.call('SET', job_key(P, id), pack_job(job))
    -- Of the others nobody hears.
    values[place] = job.schedule and value or string.sub(value, 1, JOB_TEXTS)
    states[place] = 'C'
    marks[2 * place - 1], marks[2 * place] = id, mark
  end
  if #ids > 0 then
    leave_jobs(P, leaving, now)
    redis.call('HSET', P .. 'cancel', unpack(marks))
    end_jobs(P, ids, values, states, now)
  end
end

-- Cancel one job; returns its state after it, '' where there is none.
local function cancel_job(P, id, mark, reason, now)
  local value = brief(P, id)
  if not value then
    return ''
  end
  local state = job_state(value)
  if state == 'W' and is_running(P, id) then
    redis.call('HSETNX', P .. 'cancel', id, mark)
    return 'running'
  elseif TERMINAL[state] then
    return STATES[state]
  end
  end_cancelled(P, { id }, mark, reason, now)
  return 'cancelled'
end
