-- judging: what becomes of a run, by the active run of its schedule. After arrivals, states,
-- occurrence, cancelling, schedule and runs.
--
-- While a script is at a schedule, that has beside its fields: name, key, id, and what is answered:
-- `started`, jobs that may run now; how many `queued` and `missed`, and `made` for a backfill;
-- whether one of its jobs has `ended`. New jobs are gathered, and stored together by `flush`.
-- Overlap: S skip, A allow, O queue one, Q queue all, C cancel the running one.

-- At most so many are queued where jobs are cancelled: see `is_too_long`.
local ALL = 200
local waiting, gathered, cancels = {}, {}, 100

local function begin(name, key, value)
  local schedule = unpack_schedule(value)
  schedule.name, schedule.key = name, key
  schedule.id = sub(name, #schedule.tenant + 2)
  schedule.started, schedule.queued, schedule.missed, schedule.ended = {}, 0, 0, false
  schedule.made = 0
  return schedule
end

-- Store the jobs that were gathered.
local function flush()
  if #waiting > 0 then
    store(waiting)
    waiting, gathered = {}, {}
  end
end

-- Whether none of the jobs of this call was there before.
local none_is_there = count == 0 or all_new()

local function is_there(id)
  return gathered[id] or not none_is_there and redis.call('EXISTS', job_key(P, id)) == 1
end

local function gather(place, held)
  if held then
    flags_of = sub(flags_of, 1, place - 1) .. string.char(byte(flags_of, place) + JOB_HELD_FLAG)
      .. sub(flags_of, place + 1)
  end
  waiting[#waiting + 1] = place
  gathered[id_at[place]] = true
end

-- Whether the active run of a schedule is going on.
local function goes_on(schedule)
  local id = schedule.active
  if id == NO_JOB or gathered[id] then
    return id ~= NO_JOB
  end
  local state = redis.call('GETRANGE', job_key(P, id), 0, 0)
  return state ~= '' and not TERMINAL[state]
end

local function has_run(schedule, due)
  return due <= schedule.latest and find_run(P, schedule.key, due) ~= nil
end

-- Note an occurrence as the last one, if it is.
local function pass(schedule, due, kind)
  schedule.latest = math.max(schedule.latest, due)
  if kind == 'D' then
    schedule.last_due = math.max(schedule.last_due or due, due)
  end
end

local function note_skip(schedule, due, kind, number, tail)
  add_run(P, 'ended', schedule.key, due, now, 0, 'K', kind, '', tail)
  pass(schedule, due, kind)
  schedule.skipped, schedule.missed = schedule.skipped + number, schedule.missed + number
end

-- A job that is there already is taken as it is: if it is of this schedule, its run hears its end.
local function adopt(schedule, id, due, state)
  local job = unpack_job(redis.call('GET', job_key(P, id)))
  if job.schedule == schedule.id then
    job.schedule = schedule.id .. '\0' .. string.format('%016.0f', due)
    redis.call('SET', job_key(P, id), pack_job(job))
  end
  if TERMINAL[job.state] then
    return job.state == 'S' and 'succeeded' or 'ended', job.state, job.finished
  end
  return state == 'Q' and 'queued' or 'started', state, 0
end

-- Give a run its job: R may run, Q waits for the run before it. Gives the state of the run.
local function note_job(schedule, place, due, kind, state)
  local id, class, finished = id_at[place], state == 'Q' and 'queued' or 'started', 0
  if is_there(id) then
    flush()
    class, state, finished = adopt(schedule, id, due, state)
  else
    gather(place, state == 'Q')
    if state == 'R' then
      schedule.started[#schedule.started + 1] = id
    end
    if kind == 'B' then
      schedule.made = schedule.made + 1
    end
  end
  add_run(P, class, schedule.key, due, now, finished, state, kind, id)
  pass(schedule, due, kind)
  if kind ~= 'B' then
    schedule.last_job = id
  elseif finished == 0 then
    schedule.backfilling = schedule.backfilling + 1
  end
  if kind == 'D' then
    schedule.fired = schedule.fired + 1
  end
  if state == 'Q' then
    schedule.queued, schedule.queues = schedule.queued + 1, true
  end
  return state
end

-- Let the job of a queued run wait in its turn.
local function let_go(id)
  local value = brief(P, id)
  if value and redis.call('HDEL', P .. 'hold', id) == 1 then
    if job_state(value) == 'W' and not is_running(P, id) then
      local turn = empty_turn(job_lane(value), job_tenant(value))
      join_turn(turn, job_due(value), member_of(job_seq(value), id))
      enter_jobs(P, { turn }, now)
    end
  end
end

-- If the active run is over, the earliest of those that are queued begins.
local function start_queued(schedule)
  if not schedule.queues or goes_on(schedule) then
    return
  end
  local queue = P .. 'runs:queued:' .. schedule.key
  local run, another = unpack(redis.call('ZRANGE', queue, 0, 1))
  schedule.queues = another ~= nil
  if run then
    local due, id = struct.unpack('<i8', run), sub(run, 28, 53)
    redis.call('ZREM', queue, run)
    redis.call('ZADD', P .. 'runs:started:' .. schedule.key, due,
      sub(run, 1, 24) .. 'R' .. sub(run, 26))
    let_go(id)
    schedule.active = id
    schedule.started[#schedule.started + 1] = id
  end
end

-- Cancel a job because a later one takes its place; gives its state after it.
local function cancel_for(schedule, id)
  local wish = mark_at('{"by": "schedule", "reason": "replaced"}', now)
  local state = cancel_job(P, id, wish, 'replaced', now)
  schedule.ended = schedule.ended or state == 'cancelled'
  return state
end

local function cancel_active(schedule)
  local started = {}
  if cancel_for(schedule, schedule.active) == 'cancelled' then
    for _, id in ipairs(schedule.started) do
      started[#started + 1] = id ~= schedule.active and id or nil
    end
    schedule.started = started
  end
end

-- Cancel up to so many of the queued jobs: a later one takes their place.
local function replace_queued(schedule, most)
  local jobs, dues = queued_runs(P, schedule.key, most)
  for n, id in ipairs(jobs) do
    cancel_for(schedule, id)
    local run, class = find_run(P, schedule.key, dues[n])
    redis.call('ZREM', P .. 'runs:' .. class .. ':' .. schedule.key, run)
    redis.call('ZADD', P .. 'runs:ended:' .. schedule.key, dues[n],
      sub(run, 1, 16) .. pack('<I8c1', now, 'K') .. sub(run, 26, 53) .. skip_tail('replaced', ''))
    schedule.skipped, schedule.missed = schedule.skipped + 1, schedule.missed + 1
  end
  cancels = cancels - #jobs
end

-- Whether more is queued than one script may cancel; then some are, and the caller comes again.
local function is_too_long(schedule)
  if redis.call('ZCARD', P .. 'runs:queued:' .. schedule.key) <= math.max(0, cancels) then
    return false
  end
  replace_queued(schedule, cancels)
  return true
end

-- A backfill's run takes the place of one that was skipped.
local function give_way(schedule, due)
  local run, class = find_run(P, schedule.key, due)
  if run and sub(run, 25, 25) == 'K' then
    redis.call('ZREM', P .. 'runs:' .. class .. ':' .. schedule.key, run)
  end
end

-- Judge one run; gives its state, or nil where the occurrence has one already.
local function judge(schedule, place, due, kind, overlap)
  if kind == 'B' then
    give_way(schedule, due)
  end
  if has_run(schedule, due) then
    return nil
  elseif kind == 'B' or overlap == 'A' then
    return note_job(schedule, place, due, kind, 'R')
  elseif schedule.queued == 0 and not goes_on(schedule) then
    schedule.active = id_at[place]
    return note_job(schedule, place, due, kind, 'R')
  end
  local reason = overlap == 'S' and 'overlap'
  if overlap == 'O' and redis.call('EXISTS', P .. 'runs:queued:' .. schedule.key) == 1 then
    reason = 'queue_full'
  end
  if reason then
    note_skip(schedule, due, kind, 1, skip_tail(reason, id_at[place]))
    return 'K'
  elseif overlap == 'C' then
    flush()
    cancel_active(schedule)
    replace_queued(schedule, ALL)
    schedule.queued = 0
  end
  return note_job(schedule, place, due, kind, 'Q')
end
