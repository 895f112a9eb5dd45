-- again: let a job that has ended run again. After record, attempt, turns, requirement,
-- states and occurrence.

-- Same id and place in the order of arrival, due now, counters at zero, `lives` generations later:
-- 1 for a replay, 0 for the retry of a dead job, whose progress stays to be seen.
local function run_again(P, id, value, lives, now)
  local job = unpack_job(value)
  if job.state == 'S' then
    -- The attempt that succeeded stands in the job alone; the new life overwrites it.
    redis.call('RPUSH', P .. 'attempts:' .. id, pack_attempt({
      generation = job.generation, lease = job.lease, number = job.attempt + 1,
      claimed = job.claimed, finished = job.finished, nonce = job.nonce, worker = job.worker,
      outcome = 'succeeded', error = '',
    }))
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
  redis.call('SET', job_key(P, id), pack_job(job))
  enter(P, job.lane, job.tenant, now, job.seq, id, now)
  if job.schedule then
    tell_schedule(P, id, value, 'W', now)
  end
end
