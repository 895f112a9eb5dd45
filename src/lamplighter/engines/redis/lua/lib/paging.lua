-- paging: read a zset from its smallest score on, a page at a time, while scores grow.

-- Gives up to `many` members behind the first `skipped` of those with `score` or more, with their
-- scores; and the score and number to skip with which to go on.
local function page_of(key, score, skipped, many)
  local given = redis.call('ZRANGE', key, score, '+inf', 'BYSCORE', 'LIMIT', skipped, many,
    'WITHSCORES')
  local last = given[#given] or score
  if last ~= score then
    skipped = 0
  end
  for place = #given, 2, -2 do
    if given[place] ~= last then
      break
    end
    skipped = skipped + 1
  end
  return given, last, skipped
end
