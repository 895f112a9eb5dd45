-- explain: read a job and what decides beside it.
-- KEYS  1 shard
-- ARGV  1 clock  2 id
-- RETURNS  now, the job as lib/seen.lua makes it, settings of its queue, type and tenant or '', how
--          many jobs of its turn go before it, its lane; nothing for a job that is not there
-- TOUCHES  nothing; reads what inspect_jobs reads, queue, type, tenant, turn:<lane>:<tenant>.
--          Bound: one job.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/seen.lua

local P, now = KEYS[1], now_ms(ARGV[1])
local id = ARGV[2]

local entry = seen_job(P, id)
if not entry then
  return {}
end
local lane, tenant = job_lane(entry[1]), job_tenant(entry[1])
local of = lane_of(P, lane)
local before = redis.call('ZRANK', turn_key(P, lane, tenant), member_of(job_seq(entry[1]), id))
return {
  now,
  entry,
  redis.call('HGET', P .. 'queue', of.queue) or '',
  redis.call('HGET', P .. 'type', of.type) or '',
  redis.call('HGET', P .. 'tenant', tenant) or '',
  before or 0,
  redis.call('HGET', P .. 'lane', lane),
}
