-- fence: the right to write about a job. Callers send it as one text, lease I4 and nonce c16;
-- perhaps more follows. A running claim begins with its lease and has its nonce at 21: see record.

-- Whether a job runs, and under this very fence.
local function holds(run, fence)
  return run and string.sub(run, 21, 36) == string.sub(fence, 5, 20)
    and string.sub(run, 1, 4) == string.sub(fence, 1, 4)
end
