-- removal: what goes with a job that has ended. After keys, record and states.

-- Remove a job and all that is kept about it; `value` is the beginning of it. Notes its page in
-- `pages`, for `note_removed`.
local function remove_job(P, id, value, pages)
  redis.call('UNLINK', job_key(P, id), P .. 'log:' .. id, P .. 'attempts:' .. id)
  redis.call('HDEL', P .. 'hold', id)
  redis.call('HDEL', P .. 'cancel', id)
  redis.call('HDEL', P .. 'progress', id)
  redis.call('ZREM', P .. 'ended:' .. STATES[job_state(value)], id)
  local page = math.floor(job_seq(value) / 256)
  pages[page] = (pages[page] or 0) + 1
end

-- Note how many jobs went, and how much of their pages: 128 stands for half of what a page holds.
local function note_removed(P, pages)
  for page, count in pairs(pages) do
    redis.call('INCRBY', P .. 'removed', count)
    local size = redis.call('STRLEN', P .. 'page:' .. page) / 26
    if size > 0 then
      redis.call('ZINCRBY', P .. 'gone', 256 * count / size, page)
    end
  end
end

-- Remove the idempotency keys of a job. A key is as old as its job.
local function remove_keys(P, id, value)
  local at = string.format('%.0f', job_created(value))
  for _, name in ipairs(redis.call('ZRANGE', P .. 'keys', at, at, 'BYSCORE')) do
    local value = redis.call('GET', P .. 'key:' .. name)
    if value and string.sub(value, 9, 34) == id then
      redis.call('UNLINK', P .. 'key:' .. name)
      redis.call('ZREM', P .. 'keys', name)
    end
  end
end
