-- requests: nonces of claims that were answered, so that a repeat is known; kept for an hour.

local function note_request(P, nonce, now)
  local HOUR_MS, requests = 3600000, P .. 'requests'
  local old = redis.call('ZRANGE', requests, '-inf', now - HOUR_MS, 'BYSCORE', 'LIMIT', 0, 4)
  if #old > 0 then
    redis.call('ZREM', requests, unpack(old))
  end
  redis.call('ZADD', requests, now, nonce)
end
