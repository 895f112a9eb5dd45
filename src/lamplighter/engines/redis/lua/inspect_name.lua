-- inspect_name: read what is kept of one name: settings, hand-outs, or what waits.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 queue, tenant, type, handed or waits  3 name
-- RETURNS  text, '' if there is none
-- TOUCHES  nothing; reads one field of that hash.

local P, which, name = KEYS[1], ARGV[2], ARGV[3]

return redis.call('HGET', P .. which, name) or ''
