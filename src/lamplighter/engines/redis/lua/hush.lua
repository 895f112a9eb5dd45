-- hush: somebody does not wait any more.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock (not used)  2 ear  3 profile
-- RETURNS  1 if it was waiting, otherwise 0
-- TOUCHES  waiters:<profile>
--@flags allow-oom

local P = KEYS[1]
local ear, profile = ARGV[2], ARGV[3]

return redis.call('ZREM', P .. 'waiters:' .. profile, ear)
