-- remove_queue: let an empty queue be listed no more; whoever calls has looked for running and held
-- jobs, and for workers.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 queue  3 1: it has lanes or settings somewhere
-- RETURNS  done | already | conflict | unknown, for this shard
-- TOUCHES  queue, settings_version, brought, brought_by:<tenant>. Bound: one queue.
--@flags allow-oom
--@include lib/keys.lua
--@include lib/settings.lua

local P, name, there = KEYS[1], ARGV[2], ARGV[3] == '1'

if redis.call('SCARD', P .. 'active:' .. encode(name)) > 0 then
  return 'conflict'
end
local tenant = redis.call('HGET', P .. 'brought', name)
if tenant then
  redis.call('HDEL', P .. 'brought', name)
  redis.call('SREM', P .. 'brought_by:' .. encode(tenant), name)
end
if there and not read_settings(P, 'queue', name).removed then
  write_settings(P, 'queue', name, { removed = true })
  return 'done'
end
if tenant then
  return 'done'
end
return there and 'already' or 'unknown'
