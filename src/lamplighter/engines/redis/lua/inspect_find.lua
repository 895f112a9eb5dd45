-- inspect_find: look for jobs that a filter means, newest first.
-- KEYS  1 shard
-- ARGV  1 clock  2 sequence number before which to begin  3 how many are wanted  4 filter
-- RETURNS  sequence number of the last job that was looked at, 1 when there may be more behind it,
--          how many were looked at, then per job found: id, sequence number, created
-- TOUCHES  nothing; reads seq, oldest_page, page:<n>, job, run, hold, cancel, lane.
--          Bound: 100 jobs, in at most 100 pages.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/filter.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local before, wanted, filter = tonumber(ARGV[2]), tonumber(ARGV[3]), read_filter(ARGV[4])
local JOBS, PAGES, PAGE = 100, 100, 256

local last = tonumber(redis.call('GET', P .. 'seq') or '0')
local oldest = tonumber(redis.call('GET', P .. 'oldest_page') or '0')
before = math.min(before, last + 1)
local first_page = math.floor((before - 1) / PAGE)
local found, looked, number = {}, 0, 0

-- Looks at the jobs of a page from the last on; gives false when it has to stop among them.
local function look(page, text)
  -- A page that has lost jobs is short: where an id stands says nothing of its number.
  for place = #text - 25, 1, -26 do
    local id = string.sub(text, place, place + 25)
    local value = string.byte(id) ~= 0 and brief(P, id)
    if value then
      local seq = job_seq(value)
      if seq < before and math.floor(seq / PAGE) == page then
        if number == wanted or looked == JOBS then
          return false
        end
        before, looked = seq, looked + 1
        if fits(P, filter, id, value, now) then
          number = number + 1
          found[#found + 1] = id
          found[#found + 1] = seq
          found[#found + 1] = job_created(value)
        end
      end
    end
  end
  return true
end

local more = 0
for page = first_page, oldest, -1 do
  local text = redis.call('GET', P .. 'page:' .. page) or ''
  if page <= first_page - PAGES or not look(page, text) then
    more = 1
    break
  end
  before = math.min(before, page * PAGE)
end
return { before, more, looked, unpack(found) }
