-- record: the values of a job, of its running claim and of its attempts that are over. What they
-- hold is declared in layout.py, from where job_due(value), JOB_DUE, unpack_job and so on come: see
-- scripts.py. After keys.
--@layout job
--@layout run
--@layout attempt
--@layout next

-- Enough of a job's value for its numbers and its tenant, whose name has at most 64 characters.
local function brief(P, id)
  local value = redis.call('GETRANGE', job_key(P, id), 0, JOB_TEXTS + 254)
  return value ~= '' and value or nil
end

local function job_tenant(value)
  return string.sub(value, JOB_TEXTS, JOB_TEXTS - 1 + job_tenant_size(value))
end

-- The value of a job whose claim `run` has succeeded; `finished` is packed as '<I8', because a
-- batch has it in common. Error and reason go; what the job was submitted with stays.
local function succeeded(value, run, finished, result, note)
  local flags = bit.band(string.byte(value, JOB_FLAGS),
    JOB_SUSPECT_FLAG + JOB_AT_MOST_ONCE_FLAG + JOB_SCHEDULE_FLAG + JOB_HELD_FLAG)
  local tenant, args, extras, schedule = struct.unpack('<I2I4I4I2', value, JOB_TENANT_SIZE)
  local worker = string.sub(run, RUN_TEXTS)
  if result then
    flags = flags + JOB_RESULT_FLAG
  end
  if note then
    flags = flags + JOB_NOTE_FLAG
  end
  return 'S' .. string.char(flags) .. string.sub(value, JOB_LANE, JOB_FINISHED - 1) .. finished
    .. string.sub(run, 1, RUN_LEASE_MS - 1) .. string.sub(value, JOB_TENANT_SIZE, JOB_ERROR_SIZE - 1)
    .. struct.pack('<I4I2I4I4I2', 0, #worker, 0, result and #result or 0, note and #note or 0)
    .. string.sub(value, JOB_TEXTS, JOB_TEXTS - 1 + tenant + args + extras + schedule)
    .. worker .. (result or '') .. (note or '')
end

-- Set the start mark of a running claim.
local function mark_start(P, id, run)
  redis.call('HSET', P .. 'run', id,
    string.sub(run, 1, RUN_STARTED - 1) .. '\1' .. string.sub(run, RUN_TEXTS))
end
