-- mark: who did something, why, and when. The text begins as Python wrote it, without the time.

local function mark_at(text, now)
  return string.sub(text, 1, -2) .. ', "at": ' .. string.format('%.0f', now) .. '}'
end
