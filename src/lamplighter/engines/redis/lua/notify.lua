-- notify: tell everybody who waits for one of these topics; who waits later sees it by its number.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  then topics
-- RETURNS  how many were told
-- TOUCHES  told (a counter), news:<topic>, waiters:<topic>, wake:<ear>; <= 500 ears a topic
--@include lib/clock.lua

local P = KEYS[1]
local given = ARGV[1]
local NEWS_MS, WAKE_MS, MOST = 86400000, 60000, 500

-- Numbers only grow, also over a server that was emptied: a count that begins, begins at the time.
local function next_number()
  local number = redis.call('INCR', P .. 'told')
  if number == 1 then
    local time = redis.call('TIME')
    number = tonumber(time[1]) * 1000000 + tonumber(time[2])
    redis.call('SET', P .. 'told', string.format('%.0f', number))
  end
  return string.format('%.0f', number)
end

local now = string.format('%.0f', now_ms(given))
local told = 0
for i = 2, #ARGV do
  local topic = ARGV[i]
  local number = next_number()
  redis.call('SET', P .. 'news:' .. topic, number, 'PX', NEWS_MS)
  local waiters = P .. 'waiters:' .. topic
  for _, ear in ipairs(redis.call('ZRANGE', waiters, now, '+inf', 'BYSCORE', 'LIMIT', 0, MOST)) do
    local wake = P .. 'wake:' .. ear
    redis.call('RPUSH', wake, number .. ' ' .. topic)
    redis.call('PEXPIRE', wake, WAKE_MS)
    told = told + 1
  end
  -- Told is told: who goes on waiting says so again. So nobody is told twice, or while at work.
  redis.call('DEL', waiters)
end
return told
