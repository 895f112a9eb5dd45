-- confirm: write once more what stands there, so that replicas have something to confirm.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock, not used
-- RETURNS  1 when there is a store
-- TOUCHES  meta, which stays as it is. Bound: one key.
--@flags allow-oom

local meta = KEYS[1] .. 'meta'
local program = redis.call('HGET', meta, 'program')
if not program then
  return 0
end
redis.call('HSET', meta, 'program', program)
return 1
