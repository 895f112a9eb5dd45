-- renew: extend leases. Guard: state, lease and nonce. Index: the key of job, in the order of ids.
-- out  n, cancelling: one row for each lease that was extended; a lease given twice counts once
CREATE OR REPLACE FUNCTION renew(
    ids_ uuid[], leases_ integer[], nonces_ text[], lease_ms_ bigint
) RETURNS TABLE (n bigint, cancelling boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
BEGIN
    -- An extension that the server forgets is an extension that did not come in time.
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO tick (at)
    SELECT now_ WHERE now_ > coalesce((SELECT tick.at FROM tick ORDER BY tick.at DESC LIMIT 1), 0);
    RETURN QUERY
        UPDATE job
        SET expires = now_ + lease_ms_, lease_ms = lease_ms_
        FROM (
            SELECT u.id, u.lease, u.nonce, u.n
            FROM unnest(ids_, leases_, nonces_) WITH ORDINALITY AS u(id, lease, nonce, n)
            ORDER BY u.id
        ) AS given
        WHERE job.id = given.id
          AND job.state = running_
          AND job.lease = given.lease
          AND job.nonce = given.nonce
        RETURNING given.n, job.cancel IS NOT NULL;
END
$$;
