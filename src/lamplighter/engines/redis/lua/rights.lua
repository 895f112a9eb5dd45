-- rights: tell which commands this user may not run on the keys of the store.
-- KEYS  1 shard
-- ARGV  1 clock, not used  2… commands
-- RETURNS  per command that cannot be run: the command, refused | unknown
-- TOUCHES  nothing. Bound: as many commands as the engine has.
--@unguarded

local P = KEYS[1]
local found = {}

for place = 2, #ARGV do
  local command = ARGV[place]
  -- The key stands at every place where a command may have one: none is missing, and none is
  -- somebody else's.
  local known, may = pcall(redis.acl_check_cmd, command, P, P, P, P, P)
  if not (known and may) then
    found[#found + 1] = command
    found[#found + 1] = known and 'refused' or 'unknown'
  end
end
return found
