-- inspect_spent: whether what is good for a single use was used.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 what
-- RETURNS  1: it was, 0: it was not
-- TOUCHES  nothing; reads spent. Bound: one mark.

return redis.call('HEXISTS', KEYS[1] .. 'spent', ARGV[2])
