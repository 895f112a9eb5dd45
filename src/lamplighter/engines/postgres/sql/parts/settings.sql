-- How functions are planned: by their indexes alone, and not by statistics, which know nothing about rows
-- that live for a second.

-- planned: for verbs that write.
-- @define planned
SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
-- @end

-- bounded: for reads that stop early, in the order of an index.
-- @define bounded
SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
-- @end
