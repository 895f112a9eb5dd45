-- changes: what the operators' verbs share. After clock, keys and record.

local STATES = {
  W = 'waiting', B = 'blocked', S = 'succeeded', D = 'dead', C = 'cancelled', E = 'expired',
}
local TERMINAL = { S = true, D = true, C = true, E = true }

-- Enough of a job's value for its numbers and its tenant, whose name has at most 64 characters.
local function brief(P, id)
  local value = redis.call('GETRANGE', job_key(P, id), 0, 377)
  return value ~= '' and value or nil
end

-- Whether a job that says W is running.
local function is_running(P, id)
  return redis.call('HEXISTS', P .. 'run', id) == 1
end

local function is_held(P, id)
  return redis.call('HEXISTS', P .. 'hold', id) == 1
end

-- One more answer: what became of the wish, and the job's state after it, '' when it is gone.
local function answer(answers, what, state)
  answers[#answers + 1] = what
  answers[#answers + 1] = state
end
