-- inspect_jobs: read jobs by their ids.
-- KEYS  1 shard
-- ARGV  1 clock  2… ids
-- RETURNS  now, then per id an entry as lib/seen.lua makes it, or '' for one that is not there; the
--          last ones are left out when the answer has become large
-- TOUCHES  nothing; reads job, run, lease:<ms>, lane, hold, cancel, progress. Bound: 500 ids, and
--          the job with which the answer reaches 4 MiB.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/states.lua
--@include lib/seen.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local FIRST_ID, LARGE = 2, 4194304

local answer_, size = { now }, 0
for place = FIRST_ID, #ARGV do
  local entry = seen_job(P, ARGV[place])
  answer_[#answer_ + 1] = entry or ''
  size = size + (entry and #entry[1] or 0)
  if size >= LARGE then
    break
  end
end
return answer_
