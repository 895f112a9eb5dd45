-- put_tenant: set a tenant's weight or hold; the first mark of a hold stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 tenant  3 weight or ''  4 1 hold, 0 unhold, '' neither  5 mark without its time
-- RETURNS  settings version
-- TOUCHES  tenant, settings_version, line:, heads:, asleep: and shut:<lane> of all lanes.
--          Bound: one turn per lane, however many jobs wait in it.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/settings.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local name, weight, held, mark = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local settings = read_settings(P, 'tenant', name)
settings.weight = weight or settings.weight
set_hold(settings, held, mark_at(mark, now))
for lane = 1, held == '' and 0 or redis.call('HLEN', P .. 'lane') do
  if held == '1' then
    shut_turn(P, lane, name)
  else
    open_turn(P, lane, name, now)
  end
end
return write_settings(P, 'tenant', name, settings)
