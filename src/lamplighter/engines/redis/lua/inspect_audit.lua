-- inspect_audit: read audit entries, the newest first.
-- KEYS  1 shard, always 0
-- ARGV  1 clock, not used  2 1 for those of one tenant  3 tenant  4 number before which to begin
--       5 how many, at most 100
-- RETURNS  per entry: id, its number, the entry
-- TOUCHES  nothing; reads audit_log, audit_of:<tenant>, audit. Bound: 100 entries.
--@include lib/keys.lua

local P = KEYS[1]
local owned, tenant, before, many = ARGV[2] == '1', ARGV[3], ARGV[4], tonumber(ARGV[5])

local key = P .. (owned and 'audit_of:' .. encode(tenant) or 'audit_log')
local given = redis.call('ZRANGE', key, '(' .. before, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0,
  math.min(many, 100), 'WITHSCORES')
local found = {}
for place = 1, #given, 2 do
  found[#found + 1] = given[place]
  found[#found + 1] = given[place + 1]
  found[#found + 1] = redis.call('HGET', P .. 'audit', given[place])
end
return found
