-- pages: the index of all jobs, 256 ids to a page, in the order of their submission. After keys.
-- submit writes an id at its place; where it stands in a page that lost jobs says nothing any more.

-- Give the ids of a page whose jobs are there and belong to it, in their order.
local function living_ids(P, page, text)
  local found, seen = {}, {}
  for place = #text - 25, 1, -26 do
    local id = string.sub(text, place, place + 25)
    -- A place that nobody took is empty; an id that was removed and submitted anew stands behind.
    if string.byte(id) ~= 0 and not seen[id] then
      local value = brief(P, id)
      if value and math.floor(job_seq(value) / 256) == page then
        table.insert(found, 1, id)
        seen[id] = true
      end
    end
  end
  return found
end

-- Make pages smaller that have lost half of their jobs, and remove those that have lost all.
-- A page that still takes new jobs, each at its place, is left until it is full.
local function tidy_pages(P)
  local growing = math.floor((tonumber(redis.call('GET', P .. 'seq') or '0') + 1) / 256)
  local ripe = redis.call('ZRANGE', P .. 'gone', '+inf', 128, 'BYSCORE', 'REV', 'LIMIT', 0, 17)
  for _, member in ipairs(ripe) do
    local page, key = tonumber(member), P .. 'page:' .. member
    if page < growing then
      local living = living_ids(P, page, redis.call('GET', key) or '')
      redis.call('ZREM', P .. 'gone', member)
      if #living == 0 then
        redis.call('DEL', key)
      else
        redis.call('SET', key, table.concat(living))
      end
    end
  end
  -- Listings end at the first page there is.
  local first = tonumber(redis.call('GET', P .. 'oldest_page') or '0')
  local place = first
  while place < growing and place < first + 500
    and redis.call('EXISTS', P .. 'page:' .. place) == 0 do
    place = place + 1
  end
  if place > first then
    redis.call('SET', P .. 'oldest_page', place)
  end
end
