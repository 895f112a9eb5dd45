-- inspect_held: read whose jobs are held, and in which lanes.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 cursor, 0 to begin
-- RETURNS  cursor to go on with, 0 at the end, then per job that is held and does not run: id,
--          tenant, lane; one may come twice
-- TOUCHES  nothing; reads hold, run, job:<id>. Bound: about 300 jobs.
--@include lib/keys.lua
--@include lib/record.lua

local P, cursor = KEYS[1], ARGV[2]

local given = redis.call('HSCAN', P .. 'hold', cursor, 'COUNT', 300)
local found = { given[1] }
for place = 1, #given[2], 2 do
  local id = given[2][place]
  local value = redis.call('HEXISTS', P .. 'run', id) == 0 and brief(P, id)
  if value then
    found[#found + 1] = id
    found[#found + 1] = job_tenant(value)
    found[#found + 1] = job_lane(value)
  end
end
return found
