-- inspect_running: read which jobs run, and where they were queued or whose they are.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 lane or tenant  3 cursor, 0 to begin
-- RETURNS  cursor to go on with, 0 at the end, then packed, per job: id, lane or tenant; one may come
--          twice
-- TOUCHES  nothing; reads run, job. Bound: about 300 jobs.
--@include lib/keys.lua
--@include lib/record.lua

local P, what, cursor = KEYS[1], ARGV[2], ARGV[3]

local given = redis.call('HSCAN', P .. 'run', cursor, 'COUNT', 300)
local found = {}
for place = 1, #given[2], 2 do
  local id = given[2][place]
  local value = brief(P, id)
  if value then
    found[#found + 1] = id
    found[#found + 1] = what == 'lane' and job_lane(value) or job_tenant(value)
  end
end
return { given[1], cmsgpack.pack(found) }
