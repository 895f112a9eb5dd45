-- fence: the right to write about a job. Callers send it as one text, lease I4 and nonce c16;
-- perhaps more follows. After record.

-- Whether a job runs, and under this very fence.
local function holds(run, fence)
  return run and run_nonce(run) == string.sub(fence, 5, 20)
    and string.sub(run, 1, 4) == string.sub(fence, 1, 4)
end
