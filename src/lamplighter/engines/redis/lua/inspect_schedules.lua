-- inspect_schedules: look for schedules that a filter means, by name.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 where to begin, as a bound of ZRANGE BYLEX  3 beginning of the names
--       4 how many are wanted  5 1 for held ones, 0 for others, '' for all  6 1 for those with other
--       zones than 7  8 beginning of the ids  9… types
-- RETURNS  1 when there may be more, the last name that was looked at or '', then per schedule found
--          name, value, spec
-- TOUCHES  nothing; reads schedule_names, schedule:<name>, specs. Bound: 100 schedules.
--@include lib/keys.lua
--@include lib/schedule.lua

local P = KEYS[1]
local from, prefix, wanted = ARGV[2], ARGV[3], tonumber(ARGV[4])
local held, other_zones, zones, id_prefix = ARGV[5], ARGV[6] == '1', ARGV[7], ARGV[8]
local FIRST_TYPE, LOOKS = 9, 100

local types = nil
for place = FIRST_TYPE, #ARGV do
  types = types or {}
  types[ARGV[place]] = true
end

local function is_meant(name, value)
  local one = unpack_schedule(value)
  local id_at = #one.tenant + 2
  return string.sub(name, id_at, id_at + #id_prefix - 1) == id_prefix
    and (not types or types[one.type])
    and (held == '' or (held == '1') == (one.hold ~= nil))
    and not (other_zones and one.zones == zones)
end

-- No text has the byte 255.
local names = redis.call('ZRANGE', P .. 'schedule_names', from, '(' .. prefix .. '\255', 'BYLEX',
  'LIMIT', 0, LOOKS)
local more, last, found, number = #names == LOOKS and 1 or 0, '', {}, 0
for place, name in ipairs(names) do
  local value = redis.call('GET', schedule_key(P, name))
  last = name
  if value and is_meant(name, value) then
    found[#found + 1] = name
    found[#found + 1] = value
    found[#found + 1] = redis.call('HGET', P .. 'specs', name) or ''
    number = number + 1
  end
  if number >= wanted then
    more = (more == 1 or place < #names) and 1 or 0
    break
  end
end
return { more, last, unpack(found) }
