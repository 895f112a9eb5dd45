-- put_type: set a type's hold; the first mark stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 type  3 1 hold, 0 unhold, '' neither  4 mark without its time
-- RETURNS  settings version
-- TOUCHES  type, settings_version. Bound: one type.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/mark.lua
--@include lib/settings.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local name, held, mark = ARGV[2], ARGV[3], ARGV[4]

local settings = read_settings(P, 'type', name)
set_hold(settings, held, mark_at(mark, now))
return write_settings(P, 'type', name, settings)
