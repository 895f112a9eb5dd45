-- put_settings: set what a queue, tenant or type is given, or its hold, whose first mark stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 queue, tenant or type  3 name  4 longest wait of a queue in ms, weight of a
--       tenant, or ''  5 1 hold, 0 unhold, '' neither  6 mark without its time
-- RETURNS  settings version
-- TOUCHES  queue, tenant or type, settings_version; for a tenant line:, heads:, asleep: and
--          shut:<lane> of all lanes. Bound: one turn per lane, however many jobs wait in it.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/settings.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local kind, name, number, held, mark = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local FIELDS = { queue = 'max_wait', tenant = 'weight' }

-- Take a turn out of line or sleep because its tenant is held. Nothing happens where there is none.
local function shut_turn(lane)
  local first = redis.call('ZRANGE', turn_key(P, lane, name), 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZREM', P .. 'line:' .. lane, name)
    redis.call('ZREM', P .. 'heads:' .. lane, first[1] .. name)
    redis.call('ZREM', P .. 'asleep:' .. lane, name)
    redis.call('ZADD', P .. 'shut:' .. lane, first[2], name)
  end
end

-- Let a turn go on whose tenant is held no more: in line at the clock if its head is due, else
-- asleep. Nothing happens to a turn that was not shut.
local function open_turn(lane)
  if redis.call('ZREM', P .. 'shut:' .. lane, name) == 0 then
    return
  end
  local first = redis.call('ZRANGE', turn_key(P, lane, name), 0, 0, 'WITHSCORES')
  local due = tonumber(first[2])
  if due <= now then
    local turn = { tenant = name, due = due, member = first[1] }
    wake_turns(P, lane, lane_of(P, lane).band, { turn })
  else
    redis.call('ZADD', P .. 'asleep:' .. lane, due, name)
  end
end

local settings = read_settings(P, kind, name)
if number then
  settings[FIELDS[kind]] = number
end
settings.removed = nil
if held == '1' then
  settings.hold = settings.hold or mark_at(mark, now)
elseif held == '0' then
  settings.hold = nil
end
for lane = 1, kind == 'tenant' and held ~= '' and redis.call('HLEN', P .. 'lane') or 0 do
  if held == '1' then
    shut_turn(lane)
  else
    open_turn(lane)
  end
end
return write_settings(P, kind, name, settings)
