-- purge: remove terminal jobs with all that is kept about them; their keys stay and answer `gone`.
-- KEYS  1 shard
-- ARGV  1 clock  2… ids, each once
-- RETURNS  per id: done | conflict | unknown, state after it or ''
-- TOUCHES  job, run (reads), hold, cancel, progress, log:<id>, attempts:<id>, ended:<state>,
--          page:<n> (reads), gone, removed. Bound: 100 ids.
--@flags allow-oom
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/changes.lua
--@include lib/removal.lua

local P = KEYS[1]
local FIRST_ID = 2

local answers, pages = {}, {}
for place = FIRST_ID, #ARGV do
  local id = ARGV[place]
  local value = brief(P, id)
  local state = value and string.sub(value, 1, 1)
  if not value then
    answer(answers, 'unknown', '')
  elseif TERMINAL[state] then
    remove_job(P, id, value, pages)
    answer(answers, 'done', '')
  elseif state == 'W' and is_running(P, id) then
    answer(answers, 'conflict', 'running')
  else
    answer(answers, 'conflict', STATES[state])
  end
end
note_removed(P, pages)
return answers
