-- inspect_logs: read pieces of a job's log, by lease number, then by their own.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 id  3 tenant it must be of, or '' for any  4, 5 lease and number
--       behind which to begin  6 how many
-- RETURNS  per piece: lease, number, data
-- TOUCHES  nothing; reads job, log:<id>. Bound: 500 pieces of one job.
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/states.lua

local P, id, tenant = KEYS[1], ARGV[2], ARGV[3]
local lease, number, many = tonumber(ARGV[4]), tonumber(ARGV[5]), math.min(tonumber(ARGV[6]), 500)

if tenant ~= '' then
  local value = brief(P, id)
  if not value or job_tenant(value) ~= tenant then
    return {}
  end
end
local places = {}
for _, field in ipairs(redis.call('HKEYS', P .. 'log:' .. id)) do
  local of, own = string.match(field, '^(%d+):(%d+)$')
  of, own = tonumber(of), tonumber(own)
  if of > lease or of == lease and own > number then
    places[#places + 1] = { of, own, field }
  end
end
table.sort(places, function(one, other)
  return one[1] < other[1] or one[1] == other[1] and one[2] < other[2]
end)
local found = {}
for place = 1, math.min(many, #places) do
  local piece = places[place]
  found[#found + 1] = piece[1]
  found[#found + 1] = piece[2]
  found[#found + 1] = redis.call('HGET', P .. 'log:' .. id, piece[3])
end
return found
