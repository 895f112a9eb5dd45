-- inspect_types: read published versions of types, those not seen for longest first.
-- KEYS  1 shard, always 0
-- ARGV  1 clock, not used  2 time from which to begin, or -inf  3 how many of that time to leave
--       out
-- RETURNS  2 and 3 to go on with, then per version: name .. \0 .. hash, when it was seen, text,
--          settings of the type or ''; none: that was all. One may come twice
-- TOUCHES  nothing; reads types, types_seen, type. Bound: 100 versions.
--@include lib/paging.lua

local P, score, skipped = KEYS[1], ARGV[2], tonumber(ARGV[3])
local VERSIONS = 100

local given
given, score, skipped = page_of(P .. 'types_seen', score, skipped, VERSIONS)
local found = { score, skipped }
for place = 1, #given, 2 do
  local version = given[place]
  local name = string.match(version, '^%Z*')
  found[#found + 1] = {
    version,
    given[place + 1],
    redis.call('HGET', P .. 'types', version) or '',
    redis.call('HGET', P .. 'type', name) or '',
  }
end
return found
