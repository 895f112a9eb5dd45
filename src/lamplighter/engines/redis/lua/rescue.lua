-- rescue: read claims whose lease has ended; the write is settle.
-- KEYS  1 shard
-- ARGV  1 clock  2 how many at most
-- RETURNS  'more' if leases are left that the clock has stretched, which is to be asked again at
--          once; otherwise 'ended', then per claim, longest overdue first: ms overdue, id, value,
--          lane, running claim
-- TOUCHES  lease:<ms>, spans; reads run, job, lane. Bound: 500 leases cut, 500 claims read.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local limit = math.min(tonumber(ARGV[2]), 500)
local CUT_LIMIT = 500

-- A lease that ends later than its length from now was given before the clock went back.
local function cut(key, span)
  local latest = now + tonumber(span)
  local stretched = redis.call('ZRANGE', key, string.format('(%.0f', latest), '+inf', 'BYSCORE',
    'LIMIT', 0, CUT_LIMIT)
  if #stretched > 0 then
    local leases = {}
    for _, id in ipairs(stretched) do
      leases[#leases + 1] = latest
      leases[#leases + 1] = id
    end
    redis.call('ZADD', key, unpack(leases))
  end
  return #stretched
end

local ended = {}
for _, span in ipairs(redis.call('SMEMBERS', P .. 'spans')) do
  local key = P .. 'lease:' .. span
  if cut(key, span) == CUT_LIMIT then
    return { 'more' }
  end
  local found = redis.call('ZRANGE', key, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  for place = 1, #found, 2 do
    ended[#ended + 1] = { id = found[place], expires = tonumber(found[place + 1]) }
  end
  if #found == 0 and redis.call('EXISTS', key) == 0 then
    redis.call('SREM', P .. 'spans', span)
  end
end
table.sort(ended, function(one, other) return one.expires < other.expires end)
local answer = { 'ended' }
for place = 1, math.min(limit, #ended) do
  local one = ended[place]
  local value = redis.call('GET', job_key(P, one.id))
  answer[#answer + 1] = now - one.expires
  answer[#answer + 1] = one.id
  answer[#answer + 1] = value
  answer[#answer + 1] = redis.call('HGET', P .. 'lane', job_lane(value))
  answer[#answer + 1] = redis.call('HGET', P .. 'run', one.id)
end
return answer
