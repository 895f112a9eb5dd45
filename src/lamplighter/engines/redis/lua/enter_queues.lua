-- enter_queues: note that a tenant brings these queues, all of them or none.
-- KEYS  1 shard, always 0
-- ARGV  1 clock, not used  2 tenant  3 how many it may have brought  4… queues
-- RETURNS  1: they are noted, 0: they are too many
-- TOUCHES  brought, brought_by:<tenant>. Bound: the queues that are given.
--@include lib/keys.lua

local P, tenant, most = KEYS[1], ARGV[2], tonumber(ARGV[3])
local own = P .. 'brought_by:' .. encode(tenant)

local new, seen = {}, {}
for place = 4, #ARGV do
  local name = ARGV[place]
  if not seen[name] and redis.call('HEXISTS', P .. 'brought', name) == 0 then
    new[#new + 1] = name
  end
  seen[name] = true
end
if #new > 0 and #new + redis.call('SCARD', own) > most then
  return 0
end
for _, name in ipairs(new) do
  redis.call('HSET', P .. 'brought', name, tenant)
  redis.call('SADD', own, name)
end
return 1
