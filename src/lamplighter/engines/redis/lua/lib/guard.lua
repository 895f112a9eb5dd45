-- guard: refuse to run where the store is not, or is no longer, the one that the caller has opened.
-- Every script begins with it, but for those whose header says --@unguarded.

if redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.error_reply('NOSTORE the mark ' .. KEYS[2] .. ' is gone')
end
