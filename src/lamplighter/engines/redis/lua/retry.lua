-- retry: make waiting jobs due now; a dead one is replayed. A hold stays.
-- KEYS  1 shard
-- ARGV  1 clock  2… ids, each once
-- RETURNS  per id: done | already | conflict | unknown, state after it or ''
-- TOUCHES  job, run and hold (reads), the turns of these jobs; for dead ones what replay touches.
--          Bound: 100 ids.
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

local function make_due(id, value)
  local _, _, lane, seq = head(value)
  if not is_held(P, id) then
    enter(P, lane, tenant_of(value), now, seq, id, now)
  end
  redis.call('SETRANGE', job_key(P, id), 14, struct.pack('<I8', now))
end

local answers = {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = brief(P, id)
  if not value then
    answer(answers, 'unknown', '')
  else
    local state, _, _, _, due = head(value)
    if state == 'D' then
      run_again(P, id, redis.call('GET', job_key(P, id)), now)
      answer(answers, 'done', 'waiting')
    elseif state ~= 'W' then
      answer(answers, 'conflict', STATES[state])
    elseif is_running(P, id) then
      answer(answers, 'conflict', 'running')
    elseif due <= now then
      answer(answers, 'already', 'waiting')
    else
      make_due(id, value)
      answer(answers, 'done', 'waiting')
    end
  end
end
return answers
