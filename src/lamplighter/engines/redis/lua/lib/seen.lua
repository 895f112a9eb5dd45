-- seen: everything about a job, as records.py reads it. After keys and record.

-- One entry of seven: value, lane, running claim, end of its lease, hold, cancel, progress; what is
-- not there is ''. Gives nil for a job that is not there.
local function seen_job(P, id)
  local value = redis.call('GET', job_key(P, id))
  if not value then
    return nil
  end
  local run = job_state(value) == 'W' and redis.call('HGET', P .. 'run', id)
  local ends = false
  if run then
    ends = redis.call('ZSCORE', P .. 'lease:' .. string.format('%.0f', run_lease_ms(run)), id)
  end
  return {
    value,
    redis.call('HGET', P .. 'lane', job_lane(value)) or '',
    run or '',
    ends or '',
    redis.call('HGET', P .. 'hold', id) or '',
    redis.call('HGET', P .. 'cancel', id) or '',
    redis.call('HGET', P .. 'progress', id) or '',
  }
end
