-- states: what the state of a job is called, and what else its situation depends on. After keys.

local STATES = {
  W = 'waiting', B = 'blocked', S = 'succeeded', D = 'dead', C = 'cancelled', E = 'expired',
}
local TERMINAL = { S = true, D = true, C = true, E = true }

-- Whether a job that says W is running.
local function is_running(P, id)
  return redis.call('HEXISTS', P .. 'run', id) == 1
end

local function is_held(P, id)
  return redis.call('HEXISTS', P .. 'hold', id) == 1
end
