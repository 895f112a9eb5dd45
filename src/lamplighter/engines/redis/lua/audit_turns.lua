-- audit_turns: compare turns of a lane with the jobs behind them.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 lane  3 line, asleep or shut  4 how many turns to leave out
-- RETURNS  packed, per turn: tenant, jobs; then what is wrong, in words
-- TOUCHES  nothing; reads line:, heads:, asleep: and shut:<lane>, turn:<lane>:<tenant>, active:…
--          Bound: 200 turns.
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua

local P, lane, which, from = KEYS[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local TURNS = 200
local PLACES = { 'line', 'asleep', 'shut' }

local faults, jobs = {}, {}

local function fault(tenant, ...)
  faults[#faults + 1] = 'turn of lane ' .. lane .. ' and tenant ' .. tenant .. ' '
    .. table.concat({ ... })
end

local function check(tenant, score)
  local turn = turn_key(P, lane, tenant)
  local first = redis.call('ZRANGE', turn, 0, 0, 'WITHSCORES')
  if not first[1] then
    fault(tenant, 'is in ', which, ', but empty')
    return
  end
  jobs[#jobs + 1] = tenant
  jobs[#jobs + 1] = redis.call('ZCARD', turn)
  for _, place in ipairs(PLACES) do
    if place ~= which and redis.call('ZSCORE', P .. place .. ':' .. lane, tenant) then
      fault(tenant, 'is in ', which, ' and in ', place)
    end
  end
  if which == 'line' then
    local at = redis.call('ZSCORE', P .. 'heads:' .. lane, first[1] .. tenant)
    if not at or tonumber(at) ~= tonumber(first[2]) then
      fault(tenant, 'has its head at ', first[2], ', but heads has ', at or 'nothing')
    end
  elseif which == 'asleep' and tonumber(score) ~= tonumber(first[2]) then
    fault(tenant, 'has its head at ', first[2], ', but asleep has ', score)
  elseif which == 'shut' and tonumber(score) > tonumber(first[2]) then
    fault(tenant, 'has its head at ', first[2], ', but shut has ', score)
  end
end

local given = redis.call('ZRANGE', P .. which .. ':' .. lane, from, from + TURNS - 1, 'WITHSCORES')
for place = 1, #given, 2 do
  check(given[place], given[place + 1])
end
local queue = lane_of(P, lane).queue
if given[1] and redis.call('SISMEMBER', active_key(P, queue), lane) == 0 then
  faults[#faults + 1] = 'lane ' .. lane .. ' has turns, but queue ' .. queue .. ' does not know'
end
return { cmsgpack.pack(jobs), unpack(faults) }
