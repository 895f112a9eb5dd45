-- inspect_running: read which jobs run.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 cursor, 0 to begin
-- RETURNS  cursor to go on with, 0 at the end, then packed, per job: id, lane, tenant; one may come
--          twice
-- TOUCHES  nothing; reads run, job. Bound: about 300 jobs.
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/changes.lua

local P, cursor = KEYS[1], ARGV[2]

local given = redis.call('HSCAN', P .. 'run', cursor, 'COUNT', 300)
local found = {}
for place = 1, #given[2], 2 do
  local id = given[2][place]
  local value = brief(P, id)
  if value then
    local _, _, lane = head(value)
    found[#found + 1] = id
    found[#found + 1] = lane
    found[#found + 1] = tenant_of(value)
  end
end
return { given[1], cmsgpack.pack(found) }
