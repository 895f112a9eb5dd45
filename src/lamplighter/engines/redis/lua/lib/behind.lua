-- behind: where to go on in a zset that is read from its greatest member down. After keys.

-- The rank, from the greatest on, of the first member behind (score, member), by halving.
local function rank_behind(key, score, member)
  local low, high = 0, redis.call('ZCARD', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', key, middle, middle, 'REV', 'WITHSCORES')
    local at = tonumber(found[2])
    if at < score or at == score and name_before(found[1], member) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
