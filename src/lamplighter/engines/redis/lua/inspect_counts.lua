-- inspect_counts: count what the indexes hold.
-- KEYS  1 shard
-- ARGV  1 clock, not used
-- RETURNS  first page, last page, then list of names and numbers, as audit_jobs counts them
-- TOUCHES  nothing; reads seq, removed, oldest_page, run, spans, lease:<ms>, ended:<state>, hold,
--          cancel, progress. Bound: no job is looked at.

local P = KEYS[1]
local ENDED = { 'succeeded', 'dead', 'cancelled', 'expired' }
local MARKS = { 'hold', 'cancel', 'progress' }

local function number(key)
  return tonumber(redis.call('GET', P .. key) or '0')
end

local leases = 0
for _, span in ipairs(redis.call('SMEMBERS', P .. 'spans')) do
  leases = leases + redis.call('ZCARD', P .. 'lease:' .. span)
end
local named = {
  'jobs', number('seq') - number('removed'),
  'running', redis.call('HLEN', P .. 'run'),
  'leases', leases,
}
for _, state in ipairs(ENDED) do
  named[#named + 1] = state
  named[#named + 1] = redis.call('ZCARD', P .. 'ended:' .. state)
end
for _, mark in ipairs(MARKS) do
  named[#named + 1] = mark
  named[#named + 1] = redis.call('HLEN', P .. mark)
end
return { number('oldest_page'), math.floor(number('seq') / 256), named }
