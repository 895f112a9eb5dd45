-- journal: what a running attempt says. verbs/record.py packs it, as one text:
--   has progress B, length of it I4, pieces to drop from i8 up to i8, how many pieces I4; the
--   progress; then per piece number I8, length I4, bytes

-- Remove the pieces of one lease from a number up to another. Bound: as many as there are.
local function drop_pieces(key, lease, first, last)
  if last <= first then
    return
  end
  local fields = {}
  if last - first <= redis.call('HLEN', key) then
    for number = first, last - 1 do
      fields[#fields + 1] = string.format('%.0f:%.0f', lease, number)
    end
  else
    for _, field in ipairs(redis.call('HKEYS', key)) do
      local of, number = string.match(field, '^(%d+):(%d+)$')
      number = tonumber(number)
      if tonumber(of) == lease and number >= first and number < last then
        fields[#fields + 1] = field
      end
    end
  end
  for start = 1, #fields, 1000 do
    redis.call('HDEL', key, unpack(fields, start, math.min(start + 999, #fields)))
  end
end

local function write_journal(P, id, lease, text)
  local has_progress, length, first, last, count, at = struct.unpack('<BI4i8i8I4', text)
  if has_progress == 1 then
    redis.call('HSET', P .. 'progress', id, string.sub(text, at, at + length - 1))
  end
  at = at + length
  local key = P .. 'log:' .. id
  for _ = 1, count do
    local number, size, start = struct.unpack('<I8I4', text, at)
    at = start + size
    redis.call('HSETNX', key, string.format('%.0f:%.0f', lease, number),
      string.sub(text, start, at - 1))
  end
  drop_pieces(key, lease, first, last)
end
