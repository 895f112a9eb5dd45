-- cancel: end what waits, ask what runs; settle decides about that, once.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time  3 reason  4… ids, each once
-- RETURNS  per id: done | requested | already | conflict | unknown, state after it or ''
-- TOUCHES  job, run (reads), hold, cancel, ended:cancelled, the turns of these jobs.
--          Bound: 100 ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/changes.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local mark, reason = mark_at(ARGV[2], now), ARGV[3]
local FIRST_ID = 4

local function end_it(id, value)
  local job = unpack_job(value)
  if job.state == 'W' and not is_held(P, id) then
    leave(P, job.lane, job.tenant, job.due, job.seq, id, now)
  end
  job.state, job.finished, job.reason = 'C', now, reason
  redis.call('SET', job_key(P, id), pack_job(job))
  redis.call('HDEL', P .. 'hold', id)
  redis.call('HSET', P .. 'cancel', id, mark)
  redis.call('ZADD', P .. 'ended:cancelled', now, id)
end

local answers = {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = redis.call('GET', job_key(P, id))
  local state = value and string.sub(value, 1, 1)
  if not value then
    answer(answers, 'unknown', '')
  elseif state == 'W' and is_running(P, id) then
    local asked = redis.call('HSETNX', P .. 'cancel', id, mark) == 1
    answer(answers, asked and 'requested' or 'already', 'running')
  elseif TERMINAL[state] then
    answer(answers, state == 'C' and 'already' or 'conflict', STATES[state])
  else
    end_it(id, value)
    answer(answers, 'done', 'cancelled')
  end
end
return answers
