-- runs: what became of the occurrences of a schedule. schedule_records.py reads them.
--
-- Runs are in four zsets by their class, runs:<class>:<name>, score due:
--   queued Q, started R, succeeded S, ended: dead D, cancelled C, expired E, skipped K
-- A run is one string, little-endian:
--   1  due i8, first noted at I8, finished I8 or 0, state c1, kind c1 (D due, T trigger, B backfill)
--  27  length of the job's id B, 26 or 0; the id
--      if skipped: length B and reason; length B and the id of a job that was asked for in vain;
--      if it stands for several: the first of them i8, how many I8, 0 for very many
-- Most are below 64 bytes, and of each class about a hundred are kept: so a zset stays compact.

local function add_run(P, class, key, due, at, finished, state, kind, job, tail)
  redis.call('ZADD', P .. 'runs:' .. class .. ':' .. key, due,
    struct.pack('<i8I8I8c1c1B', due, at, finished, state, kind, #job) .. job .. (tail or ''))
end

-- What follows in a run that was skipped.
local function skip_tail(reason, asked, first, number)
  local tail = struct.pack('<B', #reason) .. reason .. struct.pack('<B', #asked) .. asked
  return first and tail .. struct.pack('<i8I8', first, number) or tail
end

-- Gives the id that was asked for, and the first occurrence of several.
local function read_tail(run)
  local place = 28 + string.byte(run, 27)
  place = place + 1 + string.byte(run, place)
  local length = string.byte(run, place)
  local asked = string.sub(run, place + 1, place + length)
  place = place + 1 + length
  return asked, place < #run and struct.unpack('<i8', run, place) or nil
end

-- Up to so many queued runs, the earliest due first: ids of their jobs, and their dues.
local function queued_runs(P, key, most)
  local ids, dues = {}, {}
  if most > 0 then
    for n, run in ipairs(redis.call('ZRANGE', P .. 'runs:queued:' .. key, 0, most - 1)) do
      ids[n], dues[n] = string.sub(run, 28, 53), struct.unpack('<i8', run)
    end
  end
  return ids, dues
end
