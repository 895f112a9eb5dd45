-- listen: note who waits for which topics, and tell what is new since they last looked.
-- Those who wait for the same topics and can run the same types share a profile, which is
-- described once: `profiles:<topic>` leads to it, `knows:<profile>` has its types.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  2 ear  3 ms until the wait is over  4 profile  5 how many types follow, or -1
--       where the profile should be known  6… types; then per topic: topic, number last seen:
--       '' when there was none, '-' when nobody has looked
-- RETURNS  'known', then per topic the number of its last news, '' if there was none for long; or
--          only 'unknown': the profile is to be described
-- TOUCHES  news:<topic>, profiles:<topic>, knows:<profile>, waiters:<profile>; all expire
--@flags allow-oom
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local ear, span, profile, type_count = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local FIRST_TYPE = 6
local FIRST_TOPIC = FIRST_TYPE + math.max(0, type_count)
local PROFILE_MS, LEAST_MS, CHUNK = 3600000, 600000, 1000

local function describe()
  local knows = P .. 'knows:' .. profile
  for first = FIRST_TYPE, FIRST_TOPIC - 1, CHUNK do
    redis.call('SADD', knows, unpack(ARGV, first, math.min(first + CHUNK, FIRST_TOPIC) - 1))
  end
  redis.call('PEXPIRE', knows, PROFILE_MS)
  for i = FIRST_TOPIC, #ARGV, 2 do
    redis.call('SADD', P .. 'profiles:' .. ARGV[i], profile)
    redis.call('PEXPIRE', P .. 'profiles:' .. ARGV[i], PROFILE_MS)
  end
end

if type_count >= 0 then
  describe()
elseif redis.call('EXISTS', P .. 'knows:' .. profile) == 0 then
  return { 'unknown' }
end
local answer, fresh = { 'known' }, false
for i = FIRST_TOPIC, #ARGV, 2 do
  local number = redis.call('GET', P .. 'news:' .. ARGV[i]) or ''
  answer[#answer + 1] = number
  -- Who looks for the first time has missed nothing. The word about a job that somebody was told of
  -- has a higher number than the last news: those who have heard it have seen more than there is.
  local seen = ARGV[i + 1] == '' and 0 or tonumber(ARGV[i + 1])
  fresh = fresh or (seen ~= nil and number ~= '' and tonumber(number) > seen)
end
if not fresh then
  local waiters = P .. 'waiters:' .. profile
  redis.call('ZADD', waiters, string.format('%.0f', now + span), ear)
  redis.call('PEXPIRE', waiters, string.format('%.0f', math.max(span, LEAST_MS)))
end
return answer
