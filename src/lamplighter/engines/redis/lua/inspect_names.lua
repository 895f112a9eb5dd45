-- inspect_names: read what is kept by name: settings, hand-outs, or what waits.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 queue, tenant, type, handed or waits  3 cursor, 0 to begin
-- RETURNS  cursor to go on with, 0 at the end, then per name: name, text; one may come twice
-- TOUCHES  nothing; reads that hash. Bound: about 300 names.

local P, which, cursor = KEYS[1], ARGV[2], ARGV[3]

local given = redis.call('HSCAN', P .. which, cursor, 'COUNT', 300)
return { given[1], unpack(given[2]) }
