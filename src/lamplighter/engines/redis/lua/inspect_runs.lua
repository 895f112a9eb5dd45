-- inspect_runs: read runs of a schedule, the latest due first.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 name of the schedule  3 due time before which to begin  4 how many
-- RETURNS  per run: the run as lib/runs.lua has it, when its job was handed out or 0
-- TOUCHES  nothing; reads runs:<class>:<name>, run, job. Bound: 100 runs.
--@include lib/keys.lua
--@include lib/record.lua

local P, key, before, wanted = KEYS[1], encode(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local function claimed_at(id)
  local run = redis.call('HGET', P .. 'run', id)
  if run then
    return run_claimed(run)
  end
  local value = brief(P, id)
  return value and job_claimed(value) or 0
end

local found = {}
for _, class in ipairs({ 'queued', 'started', 'succeeded', 'ended' }) do
  local some = redis.call('ZRANGE', P .. 'runs:' .. class .. ':' .. key, '(' .. before, '-inf',
    'BYSCORE', 'REV', 'LIMIT', 0, wanted)
  for _, run in ipairs(some) do
    found[#found + 1] = { due = struct.unpack('<i8', run), run = run }
  end
end
table.sort(found, function(one, other)
  return one.due > other.due
end)
local answers = {}
for n = 1, math.min(wanted, #found) do
  local run = found[n].run
  answers[#answers + 1] = run
  answers[#answers + 1] = string.byte(run, 27) > 0 and claimed_at(string.sub(run, 28, 53)) or 0
end
return answers
