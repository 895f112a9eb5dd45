-- inspect_turns: read turns of a lane with what waits in them.
-- KEYS  1 shard
-- ARGV  1 clock  2 lane  3 line, asleep or shut  4 how many turns to leave out
-- RETURNS  packed, per turn: tenant, jobs
-- TOUCHES  nothing; reads one of line:<lane>, asleep:<lane>, shut:<lane>, and turn:<lane>:<tenant>.
--          Bound: 500 turns.
--@include lib/keys.lua

local P = KEYS[1]
local lane, which, from = ARGV[2], ARGV[3], tonumber(ARGV[4])
local TURNS = 500

local found = {}
for _, tenant in ipairs(redis.call('ZRANGE', P .. which .. ':' .. lane, from, from + TURNS - 1)) do
  found[#found + 1] = tenant
  found[#found + 1] = redis.call('ZCARD', turn_key(P, lane, tenant))
end
-- A thousand values cost less as one.
return cmsgpack.pack(found)
