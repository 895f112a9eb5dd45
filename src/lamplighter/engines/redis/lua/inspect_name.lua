-- inspect_name: read what is kept of one name: settings, hand-outs, what waits, or who has used it up.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 queue, tenant, type, handed, waits or spent  3 name
-- RETURNS  text, or nothing if there is none
-- TOUCHES  nothing; reads one field of that hash.

local P, which, name = KEYS[1], ARGV[2], ARGV[3]

return redis.call('HGET', P .. which, name)
