-- again: begin the next life of a job that has ended. After record, attempt, turns,
-- changes and occurrence.

-- The requirement it was submitted with, from that of a suspect.
local function base_requirement(requirement)
  if requirement == 'alone' then
    return ''
  end
  return (string.gsub(requirement, '%+alone$', ''))
end

-- Same id and place in the order of arrival, generation + 1, due now, counters at zero.
local function run_again(P, id, value, now)
  local job = unpack_job(value)
  if job.state == 'S' then
    -- The attempt that succeeded stands in the job alone; the new life overwrites it.
    redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt(
      job.generation, job.lease, job.attempt + 1, job.claimed, job.finished, job.nonce,
      job.worker, 'succeeded', ''))
  end
  redis.call('ZREM', P .. 'ended:' .. STATES[job.state], id)
  redis.call('HDEL', P .. 'hold', id)
  redis.call('HDEL', P .. 'cancel', id)
  redis.call('HDEL', P .. 'progress', id)
  local lane = lane_of(P, job.lane)
  local base = base_requirement(lane.requirement)
  if base ~= lane.requirement then
    job.lane = find_lane(P, lane.queue, lane.level, lane.type, base)
  end
  job.state, job.due, job.generation = 'W', now, job.generation + 1
  job.attempt, job.crashes, job.losses, job.suspect, job.held = 0, 0, 0, false, false
  job.finished, job.claimed, job.handout, job.worker, job.error = 0, 0, 0, '', ''
  job.reason, job.result, job.note = nil, nil, nil
  redis.call('SET', job_key(P, id), pack_job(job))
  enter(P, job.lane, job.tenant, now, job.seq, id, now)
  if job.schedule then
    tell_schedule(P, id, value, 'W', now)
  end
end
