-- inspect_attempts: read a job and its newest attempts that are over, oldest first.
-- KEYS  1 shard
-- ARGV  1 clock  2 id  3 how many of the newest to leave out
-- RETURNS  now, the job as lib/seen.lua makes it, then attempts; nothing for an unknown job
-- TOUCHES  nothing; reads what inspect_jobs reads, attempts:<id>. Bound: 100 attempts.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/states.lua
--@include lib/seen.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local id, from = ARGV[2], tonumber(ARGV[3])
local ATTEMPTS = 100

local entry = seen_job(P, id)
if not entry then
  return {}
end
local over = redis.call('LRANGE', P .. 'attempts:' .. id, -(from + ATTEMPTS), -(from + 1))
return { now, entry, unpack(over) }
