-- audit_tenant: count what a tenant has in its turns, in one moment.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 tenant
-- RETURNS  jobs that stand in its turns, jobs that waits has of it; nothing if there are too many lanes
-- TOUCHES  nothing; reads lane, turn:<lane>:<tenant>, waits. Bound: 2,000 lanes.
--@include lib/keys.lua

local P, tenant = KEYS[1], ARGV[2]
local LANES = 2000

local lanes, jobs = redis.call('HLEN', P .. 'lane'), 0
if lanes > LANES then
  return {}
end
for lane = 1, lanes do
  jobs = jobs + redis.call('ZCARD', turn_key(P, lane, tenant))
end
return { jobs, tonumber(redis.call('HGET', P .. 'waits', tenant) or '0') }
