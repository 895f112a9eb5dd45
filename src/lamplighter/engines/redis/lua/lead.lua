-- lead: take or keep a role, when it is free, its term is over, or it is one's own.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2 role  3 holder  4 term in ms
-- RETURNS  1 when the holder has it now
-- TOUCHES  roles. Bound: one role.
--@flags allow-oom
--@include lib/clock.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local role, holder, term = ARGV[2], ARGV[3], tonumber(ARGV[4])

local given = redis.call('HGET', P .. 'roles', role)
if given then
  local ends, other = string.match(given, '^(%d+) (.*)$')
  ends = tonumber(ends)
  -- A term that lasts longer than ours was given before the clock went back.
  if other ~= holder and ends > now and ends <= now + term then
    return 0
  end
end
redis.call('HSET', P .. 'roles', role, string.format('%.0f %s', now + term, holder))
return 1
