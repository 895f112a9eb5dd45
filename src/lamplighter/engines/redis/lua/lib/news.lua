-- Wake-ups: telling those who wait.

-- Tell pieces of news, from list[i] on: topic, how many types follow (0: it is for everybody), and
-- per type its name and the number of jobs. Gives how many were told.
local function tell_news(P, now, list, i)
  local NEWS_MS, WAKE_MS, ALL, MOST = 86400000, 60000, 500, 64
  local ANY_TYPE = ''
  local told = 0
  now = string.format('%.0f', now)

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

  -- Wake some of a profile, those first who would wait longest. Told is told: who goes on waiting
  -- says so again. So nobody is told twice, or while at work.
  local function tell(profile, most, word)
    local waiters = P .. 'waiters:' .. profile
    local ears = redis.call('ZRANGE', waiters, '+inf', now, 'BYSCORE', 'REV', 'LIMIT', 0, most)
    for _, ear in ipairs(ears) do
      local wake = P .. 'wake:' .. ear
      redis.call('RPUSH', wake, word)
      redis.call('PEXPIRE', wake, WAKE_MS)
    end
    if #ears > 0 then
      redis.call('ZREM', waiters, unpack(ears))
    end
    redis.call('ZREMRANGEBYSCORE', waiters, '-inf', '(' .. now)
    told = told + #ears
    return #ears
  end

  -- The profiles of a topic that are described; what is left of others is forgotten.
  local function profiles_of(topic)
    local key, found = P .. 'profiles:' .. topic, {}
    for _, profile in ipairs(redis.call('SMEMBERS', key)) do
      if redis.call('EXISTS', P .. 'knows:' .. profile) == 1 then
        found[#found + 1] = profile
      else
        redis.call('SREM', key, profile)
      end
    end
    return found
  end

  -- Wake one for each job, who can run it; gives how many jobs nobody was told of.
  local function tell_of_jobs(profiles, type, jobs, word)
    local most = math.min(jobs, MOST)
    local left = most
    for _, profile in ipairs(profiles) do
      local knows = redis.call('SMISMEMBER', P .. 'knows:' .. profile, type, ANY_TYPE)
      if left > 0 and knows[1] + knows[2] > 0 then
        left = left - tell(profile, left, word)
      end
    end
    return jobs - (most - left)
  end

  while i <= #list do
    local topic, type_count = list[i], tonumber(list[i + 1])
    local number = next_number()
    local word = number .. ' ' .. topic
    local profiles, untold = profiles_of(topic), 0
    i = i + 2
    for _ = 1, type_count do
      untold = untold + tell_of_jobs(profiles, list[i], tonumber(list[i + 1]), word)
      i = i + 2
    end
    if type_count == 0 then
      for _, profile in ipairs(profiles) do
        tell(profile, ALL, word)
      end
    end
    -- News to those who begin to wait later. Jobs that somebody was told of are not: of very many
    -- workers some always are between their claim and their wait, and all of them would come back.
    if type_count == 0 or untold > 0 then
      redis.call('SET', P .. 'news:' .. topic, number, 'PX', NEWS_MS)
    end
  end
  return told
end
