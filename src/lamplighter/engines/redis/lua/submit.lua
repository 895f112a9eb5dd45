-- submit: store new jobs, all in one write.
-- KEYS  1 shard
-- ARGV  1 clock  2… jobs, as lib/arrivals.lua reads them; then news to be told, as for notify, in
--       shard 0
-- RETURNS  per job that was not created: number, already | gone | conflict, id
-- TOUCHES  job, seq, page:<n>, hold, key:…, keys, lanes, lane, band, band_lanes, the turns of these
--          jobs; what notify touches. Bound: 100 jobs.
--@include lib/clock.lua
--@include lib/keys.lua
--@include lib/record.lua
--@include lib/mark.lua
--@include lib/turns.lua
--@include lib/states.lua
--@include lib/schedule.lua
--@include lib/occurrence.lua
--@include lib/moves.lua
--@include lib/arrivals.lua
--@include lib/news.lua

-- The keys of the call, by the number of their job.
local function read_keys()
  local keys = {}
  for n = 0, key_count - 1 do
    local at = FIRST_KEY + 4 * n
    keys[tonumber(ARGV[at])] = { scope = ARGV[at + 1], key = ARGV[at + 2], body = ARGV[at + 3] }
  end
  return keys
end

local function tenant_at(place)
  local number = turn_of == '' and 1 or unpack_number('<I2', turn_of, 2 * place - 1)
  return ARGV[FIRST_TURN + 2 * (number - 1) + 1]
end

-- One after the other, as if each were a call of its own.
local function choose()
  local places, answers, created, keys = {}, {}, {}, read_keys()
  local function is_there(id)
    return created[id] or redis.call('EXISTS', job_key(P, id)) == 1
  end
  for place = 1, count do
    local id, key, answer, owner = id_at[place], keys[place], nil, nil
    if is_there(id) then
      answer, owner = 'already', id
    elseif key then
      local name = idempotency_key(P, tenant_at(place), key.scope, key.key)
      local known = redis.call('GET', name)
      if known then
        owner = sub(known, 9, 8 + ID)
        answer = sub(known, 9 + ID) ~= key.body and 'conflict' or is_there(owner) and 'already'
          or 'gone'
      else
        redis.call('SET', name, struct.pack('<I8', now) .. id .. key.body)
        redis.call('ZADD', P .. 'keys', now, sub(name, #P + 5))
      end
    end
    if answer then
      answers[#answers + 1] = place
      answers[#answers + 1] = answer
      answers[#answers + 1] = owner
    else
      created[id] = true
      places[#places + 1] = place
    end
  end
  return places, answers
end

local places, answers = {}, {}
if key_count == 0 and all_new() then
  for place = 1, count do
    places[place] = place
  end
else
  places, answers = choose()
end
if #places > 0 then
  store(places)
  if BEHIND <= #ARGV then
    tell_news(P, now, ARGV, BEHIND)
  end
end
return answers
