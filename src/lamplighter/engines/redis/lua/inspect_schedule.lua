-- inspect_schedule: read one schedule.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 name
-- RETURNS  its value and its spec, or nothing
-- TOUCHES  nothing; reads schedule:<name>, specs. Bound: one schedule.
--@include lib/keys.lua
--@include lib/schedule.lua

local P, name = KEYS[1], ARGV[2]
local value = redis.call('GET', schedule_key(P, name))
return value and { value, redis.call('HGET', P .. 'specs', name) } or {}
