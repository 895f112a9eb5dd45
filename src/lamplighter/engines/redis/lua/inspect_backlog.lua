-- inspect_backlog: count what waits in turns of some queues, for as long as anybody wants to know.
-- KEYS  1 shard
-- ARGV  1 clock  2 packed, per queue: how many jobs that are due are enough, how many that are not,
--       how many of each level, and a list of: lane, place of its level, one of line, asleep and
--       shut, how many turns to leave out
-- RETURNS  packed, for each of these as far as there was room: turns that were looked at, jobs that
--          are due, all jobs
-- TOUCHES  nothing; reads line:<lane>, asleep:<lane>, shut:<lane>, and turn:<lane>:<tenant>.
--          Bound: 500 turns.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/turns.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local TURNS, AT_ONCE = 500, 50
local room = TURNS

-- Count in turns of one lane until it is enough; says how many were looked at.
local function look(queue, lane, level, which, from)
  local key = P .. which .. ':' .. lane
  local looked, ready, waiting = 0, 0, 0
  while room > 0 do
    local some = math.min(room, AT_ONCE)
    local given = redis.call('ZRANGE', key, from + looked, from + looked + some - 1, 'WITHSCORES')
    for place = 1, #given, 2 do
      if queue[1] <= 0 and queue[2] <= 0 and queue[3][level] <= 0 then
        return looked, ready, waiting
      end
      local turn = turn_key(P, lane, given[place])
      local all, due = redis.call('ZCARD', turn), 0
      -- Those that sleep are known by when their heads fall due.
      if which == 'line' or tonumber(given[place + 1]) <= now then
        due = redis.call('ZCOUNT', turn, '-inf', now)
      end
      looked, ready, waiting = looked + 1, ready + due, waiting + all
      queue[1], queue[2], queue[3][level] = queue[1] - due, queue[2] - all + due, queue[3][level] - all
    end
    room = room - #given / 2
    if #given < 2 * some then
      break
    end
  end
  return looked, ready, waiting
end

local found = {}
for _, queue in ipairs(cmsgpack.unpack(ARGV[2])) do
  for _, asked in ipairs(queue[4]) do
    if room > 0 then
      local looked, ready, waiting = look(queue, unpack(asked))
      found[#found + 1] = { looked, ready, waiting }
    end
  end
end
return cmsgpack.pack(found)
