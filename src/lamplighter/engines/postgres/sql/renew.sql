-- renew: extend leases. Guard: state, lease and nonce. Index: the key of job, in the order of ids.
-- Waits for nobody: a client that is stopped while it has one job locked would otherwise end all leases
-- that are renewed together with it.
-- out  n, answer, cancelling: one row for each lease that was extended (held) or is locked (unknown)
CREATE OR REPLACE FUNCTION renew(
    ids_ uuid[], leases_ integer[], nonces_ text[], lease_ms_ bigint
) RETURNS TABLE (n bigint, answer text, cancelling boolean)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
    held_ bigint[];
BEGIN
    -- An extension that the server forgets is an extension that did not come in time.
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO tick (at)
    SELECT now_ WHERE now_ > coalesce((SELECT tick.at FROM tick ORDER BY tick.at DESC LIMIT 1), 0);
    held_ := ARRAY(
        SELECT given.n
        FROM (
            SELECT u.id, u.lease, u.nonce, u.n
            FROM unnest(ids_, leases_, nonces_) WITH ORDINALITY AS u(id, lease, nonce, n)
            ORDER BY u.id
        ) AS given
        JOIN job ON job.id = given.id
        WHERE job.state = running_ AND job.lease = given.lease AND job.nonce = given.nonce
        FOR NO KEY UPDATE OF job SKIP LOCKED
    );
    RETURN QUERY
        UPDATE job
        SET expires = now_ + lease_ms_, lease_ms = lease_ms_
        FROM unnest(held_) AS held(n)
        WHERE job.id = ids_[held.n]
        RETURNING held.n, 'held', job.cancel IS NOT NULL;
    IF cardinality(held_) < cardinality(ids_) THEN
        RETURN QUERY
            SELECT u.n, 'unknown', false
            FROM unnest(ids_, leases_, nonces_) WITH ORDINALITY AS u(id, lease, nonce, n)
            JOIN job ON job.id = u.id
            WHERE job.state = running_ AND job.lease = u.lease AND job.nonce = u.nonce
              AND u.n <> ALL (held_);
    END IF;
END
$$;
