-- hold: keep jobs from being handed out until they are unheld; the first mark stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 mark without its time  3… ids, each once
-- RETURNS  per id: done | already | conflict | unknown, state after it or ''
-- TOUCHES  job (reads), run (reads), hold, the turns of these jobs. Bound: 100 ids.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/changes.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local mark = mark_at(ARGV[2], now)
local FIRST_ID = 3

local answers = {}
local runs = #ARGV >= FIRST_ID and redis.call('HMGET', P .. 'run', unpack(ARGV, FIRST_ID)) or {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = brief(P, id)
  if not value then
    answer(answers, 'unknown', '')
  else
    local state, _, lane, seq, due = head(value)
    local running = state == 'W' and runs[place - FIRST_ID + 1]
    local shown = running and 'running' or STATES[state]
    if TERMINAL[state] then
      answer(answers, 'conflict', shown)
    elseif redis.call('HSETNX', P .. 'hold', id, mark) == 0 then
      answer(answers, 'already', shown)
    else
      if state == 'W' and not running then
        leave(P, lane, tenant_of(value), due, seq, id, now)
      end
      answer(answers, 'done', shown)
    end
  end
end
return answers
