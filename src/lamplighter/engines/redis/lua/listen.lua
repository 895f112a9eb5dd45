-- listen: note who waits for which topics, and tell what is new since they last looked.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  2 ear  3 ms until the wait is over  then per topic: topic, number last seen:
--       '' when there was none, '-' when nobody has looked
-- RETURNS  per topic the number of its last news, '' if there was none for long
-- TOUCHES  news:<topic>, waiters:<topic>; both expire
--@include lib/clock.lua

local P = KEYS[1]
local given, ear, span = ARGV[1], ARGV[2], tonumber(ARGV[3])
local LONGEST_MS = 600000

local now = now_ms(given)
local numbers, fresh = {}, false
for i = 4, #ARGV, 2 do
  local number = redis.call('GET', P .. 'news:' .. ARGV[i]) or ''
  numbers[#numbers + 1] = number
  -- Who looks for the first time has missed nothing.
  fresh = fresh or (ARGV[i + 1] ~= '-' and number ~= '' and number ~= ARGV[i + 1])
end
if not fresh then
  for i = 4, #ARGV, 2 do
    local waiters = P .. 'waiters:' .. ARGV[i]
    redis.call('ZADD', waiters, string.format('%.0f', now + span), ear)
    redis.call('PEXPIRE', waiters, LONGEST_MS)
  end
end
return numbers
