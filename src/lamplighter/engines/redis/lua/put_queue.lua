-- put_queue: set a queue's longest wait or hold; the first mark of a hold stays.
-- KEYS  1 shard
-- ARGV  1 clock  2 queue  3 longest wait in ms or ''  4 1 hold, 0 unhold, '' neither
--       5 mark without its time
-- RETURNS  settings version
-- TOUCHES  queue, settings_version. Bound: one queue.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/mark.lua
--@include lib/settings.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local name, max_wait, held, mark = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local settings = read_settings(P, 'queue', name)
settings.max_wait = max_wait or settings.max_wait
settings.removed = nil
set_hold(settings, held, mark_at(mark, now))
return write_settings(P, 'queue', name, settings)
