-- keys: names of people's making as parts of keys. The keyspace is described in keys.py.

local function encode(name)
  if not string.find(name, '[^A-Za-z0-9_.-]') then
    return name
  end
  return (string.gsub(name, '[^A-Za-z0-9_.-]', function(byte)
    return string.format('%%%02X', string.byte(byte))
  end))
end

-- Whether a name goes before another by its bytes. Servers may compare texts by the rules of a
-- language instead.
local by_bytes = 'Z' < 'a' and 'a' < '\195\164'

local function name_before(one, other)
  if by_bytes then
    return one < other
  end
  for place = 1, math.min(#one, #other) do
    local a, b = string.byte(one, place), string.byte(other, place)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

local function job_key(P, id)
  return P .. 'job:' .. id
end

local function turn_key(P, lane, tenant)
  return P .. 'turn:' .. lane .. ':' .. encode(tenant)
end

local function active_key(P, queue)
  return P .. 'active:' .. encode(queue)
end

local function idempotency_key(P, tenant, scope, key)
  return P .. 'key:' .. encode(tenant) .. ':' .. encode(scope) .. ':' .. encode(key)
end
