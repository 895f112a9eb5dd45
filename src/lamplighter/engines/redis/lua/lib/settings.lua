-- settings: what operators have set, one JSON object per name in the hashes queue, tenant and type.
-- Fields: max_wait and removed (queue), weight (tenant), hold: the text of a mark, there only while held.

local function read_settings(P, kind, name)
  local text = redis.call('HGET', P .. kind, name)
  return text and cjson.decode(text) or {}
end

-- '1' holds, and the first mark stays; '0' takes the hold back; '' changes nothing.
local function set_hold(settings, held, mark)
  if held == '1' then
    settings.hold = settings.hold or mark
  elseif held == '0' then
    settings.hold = nil
  end
end

-- Gives the new version of the settings, by which workers learn of the change.
local function write_settings(P, kind, name, settings)
  redis.call('HSET', P .. kind, name, cjson.encode(settings))
  return redis.call('INCR', P .. 'settings_version')
end
