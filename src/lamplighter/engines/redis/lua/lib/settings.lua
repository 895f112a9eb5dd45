-- settings: what operators have set, one JSON object per name in the hashes queue, tenant and type.
-- Fields: max_wait and removed (queue), weight (tenant), hold: the text of a mark, there only while held.

local function read_settings(P, kind, name)
  local text = redis.call('HGET', P .. kind, name)
  return text and cjson.decode(text) or {}
end

-- Gives the new version of the settings, by which workers learn of the change.
local function write_settings(P, kind, name, settings)
  redis.call('HSET', P .. kind, name, cjson.encode(settings))
  return redis.call('INCR', P .. 'settings_version')
end
