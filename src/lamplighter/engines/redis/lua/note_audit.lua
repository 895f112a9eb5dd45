-- note_audit: add entries to the audit log; one that is there already is left as it is.
-- KEYS  1 shard, always 0
-- ARGV  1 clock  2… per entry: id, 1 when it belongs to a tenant, tenant, the whole as JSON without
--       its time
-- RETURNS  nothing
-- TOUCHES  audit, audit_seq, audit_log, audit_of:<tenant>. Bound: 100 entries.
--@flags allow-oom
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/mark.lua

local P, now = KEYS[1], now_ms(ARGV[1])

for at = 2, #ARGV, 4 do
  local id, owned, tenant, text = ARGV[at], ARGV[at + 1] == '1', ARGV[at + 2], ARGV[at + 3]
  if redis.call('HSETNX', P .. 'audit', id, mark_at(text, now)) == 1 then
    local number = redis.call('INCR', P .. 'audit_seq')
    redis.call('ZADD', P .. 'audit_log', number, id)
    if owned then
      redis.call('ZADD', P .. 'audit_of:' .. encode(tenant), number, id)
    end
  end
end
return {}
