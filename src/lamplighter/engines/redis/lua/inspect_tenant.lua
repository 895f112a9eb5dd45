-- inspect_tenant: count what a tenant has waiting in some lanes.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 tenant  3 number of the first lane
-- RETURNS  lanes that were looked at, jobs
-- TOUCHES  nothing; reads lane, turn:<lane>:<tenant>. Bound: 500 lanes.
--@include lib/keys.lua

local P, tenant, first = KEYS[1], ARGV[2], tonumber(ARGV[3])
local LANES = 500

local looked, waiting = 0, 0
for lane = first, first + LANES - 1 do
  if redis.call('HEXISTS', P .. 'lane', lane) == 0 then
    break
  end
  looked = looked + 1
  waiting = waiting + redis.call('ZCARD', turn_key(P, lane, tenant))
end
return { looked, waiting }
