-- inspect_backlog: count what waits in turns of a lane.
-- KEYS  1 shard
-- ARGV  1 clock  2 lane  3 line, asleep or shut  4 how many turns to leave out  5, 6, 7 how many jobs
--       are enough: that are due, that are not, of both together
-- RETURNS  turns that were looked at, jobs that are due, all jobs
-- TOUCHES  nothing; reads one of line:<lane>, asleep:<lane>, shut:<lane>, and turn:<lane>:<tenant>.
--          Bound: 500 turns.
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local lane, which, from = ARGV[2], ARGV[3], tonumber(ARGV[4])
local due, later, both = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local TURNS = 500

local looked, ready, waiting = 0, 0, 0
for _, tenant in ipairs(redis.call('ZRANGE', P .. which .. ':' .. lane, from, from + TURNS - 1)) do
  local turn = turn_key(P, lane, tenant)
  looked = looked + 1
  ready = ready + redis.call('ZCOUNT', turn, '-inf', now)
  waiting = waiting + redis.call('ZCARD', turn)
  if ready >= due and waiting - ready >= later and waiting >= both then
    break
  end
end
return { looked, ready, waiting }
