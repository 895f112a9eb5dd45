-- inspect_schedules: look for schedules that a filter means, by id.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 where to begin, as a bound of ZRANGE BYLEX  3 beginning of the ids
--       4 how many are wanted  5 1 for held ones, 0 for others, '' for all  6 1 for those with other
--       zones than 7  8 how many tenants  9… tenants, types
-- RETURNS  1 when there may be more, the last id that was looked at or '', then per schedule found
--          id, value, spec
-- TOUCHES  nothing; reads schedule_ids, schedule:<id>, specs. Bound: 100 schedules.
--@include lib/keys.lua
--@include lib/schedule.lua

local P = KEYS[1]
local from, prefix, wanted = ARGV[2], ARGV[3], tonumber(ARGV[4])
local held, other_zones, zones, tenant_count = ARGV[5], ARGV[6] == '1', ARGV[7], tonumber(ARGV[8])
local FIRST_TENANT, LOOKS = 9, 100
local FIRST_TYPE = FIRST_TENANT + tenant_count

local function set_of(first, last)
  local set = nil
  for place = first, last do
    set = set or {}
    set[ARGV[place]] = true
  end
  return set
end

local tenants = set_of(FIRST_TENANT, FIRST_TYPE - 1)
local types = set_of(FIRST_TYPE, #ARGV)

local function is_meant(value)
  local one = unpack_schedule(value)
  return (not tenants or tenants[one.tenant]) and (not types or types[one.type])
    and (held == '' or (held == '1') == (one.hold ~= ''))
    and not (other_zones and one.zones == zones)
end

-- No text has the byte 255.
local names = redis.call('ZRANGE', P .. 'schedule_ids', from, '(' .. prefix .. '\255', 'BYLEX',
  'LIMIT', 0, LOOKS)
local more, last, found, number = #names == LOOKS and 1 or 0, '', {}, 0
for place, name in ipairs(names) do
  local value = redis.call('GET', schedule_key(P, name))
  last = name
  if value and is_meant(value) then
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
