-- filter: which jobs a filter means, decided as in port/filters.py. After keys, record, turns and
-- states.
-- A filter is JSON: statuses, types, queues, tenants, fingerprints, each a list or not there; tag;
-- finished_after, finished_before. A list without a name means no job.

local LISTS = { 'statuses', 'types', 'queues', 'tenants', 'fingerprints' }

local function read_filter(text)
  local filter = cjson.decode(text)
  for _, list in ipairs(LISTS) do
    if filter[list] then
      local names = {}
      for _, name in ipairs(filter[list]) do
        names[name] = true
      end
      filter[list] = names
    end
  end
  return filter
end

-- The shown status, as `status_of` in model/job.py derives it.
local function status_of(P, id, value, now)
  local state = job_state(value)
  if state ~= 'W' then
    return STATES[state]
  elseif is_running(P, id) then
    return redis.call('HEXISTS', P .. 'cancel', id) == 1 and 'cancelling' or 'running'
  elseif is_held(P, id) then
    return 'paused'
  elseif job_due(value) <= now then
    return 'ready'
  end
  return job_attempt(value) > 0 and 'retrying' or 'scheduled'
end

-- Error and extras stand behind the arguments; they are read only when somebody asks for them.
local function part_of(P, id, value, which)
  local tenant, args, extras, schedule, error_ = struct.unpack('<I2I4I4I2I4', value, JOB_TENANT_SIZE)
  local from, length = JOB_TEXTS - 1 + tenant + args, extras
  if which == 'error' then
    from, length = from + extras + schedule, error_
  end
  if length == 0 then
    return ''
  end
  return redis.call('GETRANGE', job_key(P, id), from, from + length - 1)
end

-- The fingerprint of an error, from its JSON. A quote inside a JSON text has a backslash before it,
-- so that these words cannot be part of one.
local function fingerprint_of(error_)
  local words = ', "fingerprint": "'
  local _, last = string.find(error_, words, 1, true)
  if not last then
    return nil
  end
  local place = last + 1
  while true do
    local found = string.find(error_, '["\\]', place)
    if not found then
      return nil
    elseif string.byte(error_, found) == 34 then
      local good, text = pcall(cjson.decode, '[' .. string.sub(error_, last, found) .. ']')
      return good and text[1] or nil
    end
    place = found + 2
  end
end

local function has_tag(extras, tag)
  local good, given = pcall(cjson.decode, extras)
  if good and type(given) == 'table' and type(given.tags) == 'table' then
    for _, one in ipairs(given.tags) do
      if one == tag then
        return true
      end
    end
  end
  return false
end

-- Whether a job is meant; `value` is the beginning of it.
local function fits(P, filter, id, value, now)
  if filter.queues or filter.types then
    local of = lane_of(P, job_lane(value))
    if filter.queues and not filter.queues[of.queue] then
      return false
    elseif filter.types and not filter.types[of.type] then
      return false
    end
  end
  if filter.tenants and not filter.tenants[job_tenant(value)] then
    return false
  end
  local after, before = filter.finished_after, filter.finished_before
  if after or before then
    local finished = job_finished(value)
    if finished == 0 or after and finished < after or before and finished >= before then
      return false
    end
  end
  if filter.statuses and not filter.statuses[status_of(P, id, value, now)] then
    return false
  end
  if filter.fingerprints then
    local print_ = fingerprint_of(part_of(P, id, value, 'error')) or ''
    if not filter.fingerprints[print_] then
      return false
    end
  end
  return not filter.tag or has_tag(part_of(P, id, value, 'extras'), filter.tag)
end
