-- notify: tell those who wait; who waits later sees by a topic's number that there was news.
-- News of jobs wakes one for each job, who can run it, and is none for those who wait later unless
-- somebody is missing; other news wakes everybody.
-- KEYS  1 prefix of shard 0
-- ARGV  1 clock  then per piece of news: topic, how many types follow (0: it is for everybody),
--       and per type its name and the number of jobs
-- RETURNS  how many were told
-- TOUCHES  told (a counter), news:<topic>, profiles:<topic>, knows:<profile>, waiters:<profile>,
--          wake:<ear>; <= 500 ears of a profile for everybody, <= 64 for the jobs of a type
--@flags allow-oom
--@include lib/clock.lua
--@include lib/news.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local FIRST = 2

return tell_news(P, now, ARGV, FIRST)
