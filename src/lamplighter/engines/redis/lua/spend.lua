-- spend: use up what is good for a single use.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 what  3 holder  4 how long it is kept in ms
-- RETURNS  1: this holder has it, 0: another has
-- TOUCHES  spent, spent_ends. Bound: one mark.
--@flags allow-oom
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local what, holder, keep = ARGV[2], ARGV[3], tonumber(ARGV[4])

if redis.call('HSETNX', P .. 'spent', what, holder) == 1 then
  redis.call('ZADD', P .. 'spent_ends', now + keep, what)
  return 1
end
return redis.call('HGET', P .. 'spent', what) == holder and 1 or 0
