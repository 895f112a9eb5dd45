-- renew: extend leases; those that belong to somebody else are left alone.
-- KEYS  1 shard
-- ARGV  1 clock  2 lease in ms  3… per lease: id; its fence
-- RETURNS  per lease 'held', 'cancelling' or 'lost'
-- TOUCHES  run, lease:<ms>, spans, cancel (reads). Bound: 100 leases.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/record.lua
--@include lib/fence.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local lease_ms = tonumber(ARGV[2])
local FIRST = 3

local ids, answers, extended = {}, {}, {}
for place = FIRST, #ARGV, 2 do
  ids[#ids + 1] = ARGV[place]
end
-- Mostly nobody wants anything to be cancelled.
local cancels = redis.call('EXISTS', P .. 'cancel') == 1
  and redis.call('HMGET', P .. 'cancel', unpack(ids)) or {}
-- Written once: fifty thousand are renewed again and again.
local expires, length = string.format('%.0f', now + lease_ms), struct.pack('<I8', lease_ms)

-- A lease of another length moves to those of its kind.
local function change_length(id, run)
  redis.call('ZREM', P .. 'lease:' .. string.format('%.0f', run_lease_ms(run)), id)
  redis.call('HSET', P .. 'run', id,
    string.sub(run, 1, RUN_LEASE_MS - 1) .. length .. string.sub(run, RUN_STARTED))
end

for n, run in ipairs(redis.call('HMGET', P .. 'run', unpack(ids))) do
  if holds(run, ARGV[FIRST + 2 * n - 1]) then
    if string.sub(run, RUN_LEASE_MS, RUN_STARTED - 1) ~= length then
      change_length(ids[n], run)
    end
    extended[#extended + 1] = expires
    extended[#extended + 1] = ids[n]
    answers[n] = cancels[n] and 'cancelling' or 'held'
  else
    answers[n] = 'lost'
  end
end
if #extended > 0 then
  redis.call('ZADD', P .. 'lease:' .. ARGV[2], unpack(extended))
  redis.call('SADD', P .. 'spans', ARGV[2])
end
return answers
