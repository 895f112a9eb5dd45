-- inspect_turns: read turns of a lane with what waits in them.
-- KEYS  1 shard
-- ARGV  1 clock  2 lane  3 line, asleep or shut  4 how many turns to leave out
-- RETURNS  per turn: tenant, jobs that are due, all jobs
-- TOUCHES  nothing; reads one of line:<lane>, asleep:<lane>, shut:<lane>, and turn:<lane>:<tenant>.
--          Bound: 500 turns.
--@include lib/clock.lua
--@include lib/keys.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local lane, which, from = ARGV[2], ARGV[3], tonumber(ARGV[4])
local TURNS = 500

local found = {}
for _, tenant in ipairs(redis.call('ZRANGE', P .. which .. ':' .. lane, from, from + TURNS - 1)) do
  local turn = turn_key(P, lane, tenant)
  found[#found + 1] = {
    tenant,
    redis.call('ZCOUNT', turn, '-inf', now),
    redis.call('ZCARD', turn),
  }
end
return found
