-- inspect_counts: count jobs per state.
-- KEYS  1 shard
-- ARGV  1 clock, not used
-- RETURNS  blocked, waiting, running, succeeded, dead, cancelled, expired
-- TOUCHES  nothing; reads seq, removed, run, ended:<state>. Bound: no job is looked at.

local P = KEYS[1]
local ENDED = { 'succeeded', 'dead', 'cancelled', 'expired' }

local function number(key)
  return tonumber(redis.call('GET', P .. key) or '0')
end

-- No verb makes blocked jobs yet. What neither runs nor has ended waits.
local blocked, running = 0, redis.call('HLEN', P .. 'run')
local found = { blocked, 0, running }
local waiting = number('seq') - number('removed') - running - blocked
for _, state in ipairs(ENDED) do
  local count = redis.call('ZCARD', P .. 'ended:' .. state)
  found[#found + 1] = count
  waiting = waiting - count
end
found[2] = waiting
return found
