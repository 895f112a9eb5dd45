-- replay: run terminal jobs again, as a new life under the same id.
-- KEYS  1 shard
-- ARGV  1 clock  2… ids, each once
-- RETURNS  per id: done | conflict | unknown, state after it or ''
-- TOUCHES  job, run (reads), hold, cancel, progress, attempts:<id>, ended:<state>, lanes, the turns
--          of these jobs; their runs. Bound: 100 ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/attempt.lua
--@include lib/turns.lua
--@include lib/changes.lua
--@include lib/occurrence.lua
--@include lib/again.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local FIRST_ID = 2

local answers = {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = redis.call('GET', job_key(P, id))
  local state = value and string.sub(value, 1, 1)
  if not value then
    answer(answers, 'unknown', '')
  elseif TERMINAL[state] then
    run_again(P, id, value, now)
    answer(answers, 'done', 'waiting')
  elseif state == 'W' and is_running(P, id) then
    answer(answers, 'conflict', 'running')
  else
    answer(answers, 'conflict', STATES[state])
  end
end
return answers
