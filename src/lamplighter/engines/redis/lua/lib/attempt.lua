-- attempt: one entry of a job's history, as text. records.py reads it.
--   generation I4, lease I4, number I4, started I8, finished I8, nonce c16,
--   lengths: worker I2, outcome I2, error I4; these parts

local function pack_attempt(generation, lease, number, started, finished, nonce, worker, outcome,
                            error_)
  return struct.pack(
    '<I4I4I4I8I8c16I2I2I4', generation, lease, number, started, finished, nonce, #worker, #outcome,
    #error_
  ) .. worker .. outcome .. error_
end
