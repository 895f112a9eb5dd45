-- prune_ages: count finished jobs, and tell when the oldest of them ended.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 how many
-- RETURNS  how many jobs have succeeded, were cancelled or expired, then when the oldest ended
-- TOUCHES  nothing; reads ended:<state>. Bound: 500 jobs of each state.

local P, many = KEYS[1], math.min(tonumber(ARGV[2]), 500)
local FINISHED = { 'succeeded', 'cancelled', 'expired' }

local count, ends = 0, {}
for _, state in ipairs(FINISHED) do
  local key = P .. 'ended:' .. state
  count = count + redis.call('ZCARD', key)
  local given = redis.call('ZRANGE', key, 0, many - 1, 'WITHSCORES')
  for place = 2, #given, 2 do
    ends[#ends + 1] = tonumber(given[place])
  end
end
table.sort(ends)
return { count, unpack(ends, 1, math.min(many, #ends)) }
