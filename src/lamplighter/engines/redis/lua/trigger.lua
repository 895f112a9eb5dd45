-- trigger: make a run of a schedule now.
-- KEYS  1 shard
-- ARGV  1 clock  2… its job, as lib/arrivals.lua reads it; then name of the schedule, overlap
-- RETURNS  done, the state of the run, and 1 if it has a job; or unknown; or again when it is to be
--          sent once more
-- TOUCHES  what submit and cancel touch; schedule:<name>, runs:<class>:<name>. Bound: one job, 100 that
--          are cancelled, a look at 400 runs.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua
--@include lib/arrivals.lua
--@include lib/cancelling.lua
--@include lib/runs.lua
--@include lib/judging.lua

local name, overlap = ARGV[BEHIND], ARGV[BEHIND + 1]
local JOB, INSTANT, LOOKS = 1, 16, 200

-- Whether a run was triggered with this job, made or asked for in vain.
local function names_job(run)
  if sub(run, 26, 26) ~= 'T' then
    return false
  end
  return sub(run, 28, 53) == id_at[JOB] or sub(run, 25, 25) == 'K' and read_tail(run) == id_at[JOB]
end

-- The run of the same wish before, or nil. Where its job does not lead to it, it is looked for among
-- the last that have ended; one that has not ended has its job.
local function earlier(schedule)
  local value = redis.call('GET', key_at[JOB])
  if value then
    local part = unpack_job(value).schedule or ''
    local due = sub(part, 1, -INSTANT - 1) == schedule.id .. '\0' and sub(part, -INSTANT)
    local run = due and find_run(P, schedule.key, due)
    if run and sub(run, 28, 53) == id_at[JOB] then
      return run
    end
  end
  for _, class in ipairs({ 'succeeded', 'ended' }) do
    local ended = P .. 'runs:' .. class .. ':' .. schedule.key
    for _, run in ipairs(redis.call('ZRANGE', ended, 0, LOOKS - 1, 'REV')) do
      if names_job(run) then
        return run
      end
    end
  end
  return nil
end

-- Now, or the next millisecond that no occurrence can have or will have, and no run has; the job is
-- told. Occurrences are at whole seconds, or at the instant the schedule waits for.
local function free_instant(schedule)
  local due = now
  while due % 1000 == 0 or due == schedule.due or has_run(schedule, due) do
    due = due + 1
  end
  local body = ARGV[BEFORE_BODIES + JOB]
  ARGV[BEFORE_BODIES + JOB] = sub(body, 1, -INSTANT - 1) .. string.format('%016.0f', due)
  return due
end

local value = redis.call('GET', schedule_key(P, name))
if not value then
  return { 'unknown' }
end
local schedule = begin(name, encode(name), value)
local run = earlier(schedule)
if run then
  local state = sub(run, 25, 25)
  -- What became of its job since is another matter.
  return { 'done', (state == 'Q' or state == 'K') and state or 'R', byte(run, 27) > 0 and 1 or 0 }
end
if overlap == 'C' and is_too_long(schedule) then
  write_schedule(P, name, schedule)
  return { 'again' }
end
start_queued(schedule)
local state = judge(schedule, JOB, free_instant(schedule), 'T', overlap)
flush()
write_schedule(P, name, schedule)
-- A job that is there already, and whose run is forgotten, may have ended.
return { 'done', (state == 'Q' or state == 'K') and state or 'R', state ~= 'K' and 1 or 0 }
