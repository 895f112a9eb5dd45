-- requirement: what the requirement of a lane says, as in model/job.py: base, version and alone, as
-- far as they are there, joined by '+'.

-- The requirement it was submitted with, the versions that take it or '', whether it runs alone.
local function parts_of(requirement)
  local shared = string.gsub('+' .. requirement, '%+alone$', '')
  local base, version = string.match(shared, '^(.*)%+(version:%d+)$')
  if not base then
    base, version = string.match(shared, '^(.*)%+(no_version)$')
  end
  local alone = #shared <= #requirement
  return string.sub(base or shared, 2), version or '', alone
end

local function requirement_of(base, version, alone)
  local parts = {}
  for _, part in ipairs({ base, version, alone and 'alone' or '' }) do
    if part ~= '' then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, '+')
end
