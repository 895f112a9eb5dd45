-- Wake-ups: telling those who wait.

-- Tell pieces of news, from list[i] on: topic, how many types follow (0: it is for everybody), and
-- per type its name and the number of jobs. Gives how many were told.
local function tell_news(P, now, list, i)
  local NEWS_MS, WAKE_MS, ALL, MOST = 86400000, 60000, 500, 64
  local ANY_TYPE = ''
  local told = 0

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
    local ears = redis.call('ZPOPMAX', P .. 'waiters:' .. profile, most)
    local woken = 0
    for place = 1, #ears, 2 do
      -- The wait of the others is over.
      if tonumber(ears[place + 1]) >= now then
        local wake = P .. 'wake:' .. ears[place]
        redis.call('RPUSH', wake, word)
        redis.call('PEXPIRE', wake, WAKE_MS)
        woken = woken + 1
      end
    end
    told = told + woken
    return woken
  end

  -- Forget a profile that nobody has described for long.
  local function forget(topic, profile)
    if redis.call('EXISTS', P .. 'knows:' .. profile) == 0 then
      redis.call('SREM', P .. 'profiles:' .. topic, profile)
    end
  end

  -- Wake one for each job, who can run it; gives how many jobs nobody was told of.
  local function tell_of_jobs(topic, profiles, type, jobs, word)
    local most = math.min(jobs, MOST)
    local left = most
    for _, profile in ipairs(profiles) do
      local knows = redis.call('SMISMEMBER', P .. 'knows:' .. profile, type, ANY_TYPE)
      if knows[1] + knows[2] == 0 then
        forget(topic, profile)
      elseif left > 0 then
        left = left - tell(profile, left, word)
      end
    end
    return jobs - (most - left)
  end

  while i <= #list do
    local topic, type_count = list[i], tonumber(list[i + 1])
    local number = next_number()
    local word = number .. ' ' .. topic
    local profiles, untold = redis.call('SMEMBERS', P .. 'profiles:' .. topic), 0
    i = i + 2
    for _ = 1, type_count do
      untold = untold + tell_of_jobs(topic, profiles, list[i], tonumber(list[i + 1]), word)
      i = i + 2
    end
    if type_count == 0 then
      for _, profile in ipairs(profiles) do
        tell(profile, ALL, word)
        forget(topic, profile)
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
