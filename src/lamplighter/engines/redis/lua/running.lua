-- running: read the claims of a worker, or those of one request, a page at a time.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2 worker or nonce  3 who or which  4 cursor, 0 to begin
-- RETURNS  cursor to go on with, 0 at the end; then per claim id, value, lane, running claim; one
--          may come twice
-- TOUCHES  nothing; reads run, job, lane. Bound: about 300 claims.
--@include lib/keys.lua
--@include lib/record.lua

local P = KEYS[1]
local by_nonce, wanted, cursor = ARGV[2] == 'nonce', ARGV[3], ARGV[4]

local page = redis.call('HSCAN', P .. 'run', cursor, 'COUNT', 300)
local answer = { page[1] }
for place = 1, #page[2], 2 do
  local id, run = page[2][place], page[2][place + 1]
  if (by_nonce and run_nonce(run) or string.sub(run, RUN_TEXTS)) == wanted then
    local value = redis.call('GET', job_key(P, id))
    answer[#answer + 1] = id
    answer[#answer + 1] = value
    answer[#answer + 1] = redis.call('HGET', P .. 'lane', job_lane(value))
    answer[#answer + 1] = run
  end
end
return answer
