-- change: do what an operator asks to jobs, each as the table of the action says: model/changes.py.
-- KEYS  1 shard
-- ARGV  1 clock  2 table: the letter of the effect for each situation  3 mark without its time
--       4 reason  5… ids, each once
-- RETURNS  per id: the number of the situation in which it was found, or -1
-- TOUCHES  job, run (reads), hold, cancel, progress, log:<id>, attempts:<id>, ended:<state>, lanes, the
--          turns of these jobs; their runs and schedules; for those that go page:<n> (reads), gone,
--          removed, key:…, keys. Bound: 100 ids, and the keys that were made together with them.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/requirement.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/cancelling.lua
--@include lib/again.lua
--@include lib/removal.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local effects, mark, reason = ARGV[2], mark_at(ARGV[3], now), ARGV[4]
local FIRST_ID = 5
-- In the order of JobState; R is a job that says W and is running.
local NUMBERS = { B = 0, W = 8, R = 16, S = 24, D = 32, C = 40, E = 48 }
local removed = {}

-- Whether these jobs run, are held, are to be cancelled; in the order of the ids, false where not.
local function marks(hash)
  return #ARGV >= FIRST_ID and redis.call('HMGET', P .. hash, unpack(ARGV, FIRST_ID)) or {}
end

local runs, holds, cancels = marks('run'), marks('hold'), marks('cancel')

local function situation(value, nth)
  local state = job_state(value)
  if state == 'W' and runs[nth] then
    state = 'R'
  end
  return NUMBERS[state] + (holds[nth] and 4 or 0) + (cancels[nth] and 2 or 0)
    + (job_due(value) <= now and 1 or 0)
end

local function whole(id)
  return redis.call('GET', job_key(P, id))
end

-- Per letter what is done to a job: its id, the beginning of its value, whether it waits, or is held.
local carry_out = {
  ['-'] = function() end,
  c = function(id)
    end_cancelled(P, id, whole(id), mark, reason, now)
  end,
  a = function(id)
    redis.call('HSET', P .. 'cancel', id, mark)
  end,
  h = function(id, value, waits)
    redis.call('HSET', P .. 'hold', id, mark)
    if waits then
      leave(P, job_lane(value), job_tenant(value), job_due(value), job_seq(value), id, now)
    end
  end,
  u = function(id, value, waits)
    redis.call('HDEL', P .. 'hold', id)
    if waits then
      enter(P, job_lane(value), job_tenant(value), job_due(value), job_seq(value), id, now)
    end
  end,
  d = function(id, value, _, held)
    if not held then
      enter(P, job_lane(value), job_tenant(value), now, job_seq(value), id, now)
    end
    redis.call('SETRANGE', job_key(P, id), JOB_DUE - 1, struct.pack('<I8', now))
  end,
  g = function(id)
    run_again(P, id, whole(id), 0, now)
  end,
  r = function(id)
    run_again(P, id, whole(id), 1, now)
  end,
  x = function(id, value)
    remove_job(P, id, value, removed)
  end,
  e = function(id, value)
    remove_keys(P, id, value)
    remove_job(P, id, value, removed)
  end,
}

local numbers = {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = brief(P, id)
  local nth = place - FIRST_ID + 1
  local number = value and situation(value, nth) or -1
  if value then
    local waits = number >= NUMBERS.W and number < NUMBERS.R
    carry_out[string.sub(effects, number + 1, number + 1)](id, value, waits, holds[nth])
  end
  numbers[#numbers + 1] = number
end
note_removed(P, removed)
return numbers
