-- clock: the store's time in milliseconds, read once per script.

local function now_ms(given)
  -- Tests say what time it is; everybody else leaves it to the server.
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
