-- prune_access: remove old audit entries, tokens that have long ended, and spent marks.
-- As the owner of the store; whoever cannot act as the owner removes nothing of the last 30 days.
-- Index: audit_at, token_ended, spent_ends.
-- out  how many are gone
CREATE OR REPLACE FUNCTION prune_access(keep_ bigint, limit_ integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    owns_ boolean := pg_catalog.pg_has_role(session_user, current_user, 'USAGE'::text);
    now_ bigint := @schema@.now_ms();
    before_ bigint := now_ - CASE WHEN owns_ THEN keep_ ELSE greatest(keep_, 2592000000::bigint) END;
    entries_ bigint;
    tokens_ bigint;
    spent_ bigint;
BEGIN
    -- What a server forgets of this is done again.
    PERFORM pg_catalog.set_config('synchronous_commit'::text, 'off'::text, true);
    DELETE FROM @schema@.audit
    WHERE audit.seq = ANY (ARRAY(
        SELECT a.seq FROM @schema@.audit AS a WHERE a.at < before_ ORDER BY a.at, a.seq
        LIMIT limit_));
    GET DIAGNOSTICS entries_ = ROW_COUNT;
    DELETE FROM @schema@.token
    WHERE token.prefix = ANY (ARRAY(
        SELECT t.prefix FROM @schema@.token AS t WHERE t.ended < before_
        ORDER BY t.ended, t.prefix
        LIMIT limit_));
    GET DIAGNOSTICS tokens_ = ROW_COUNT;
    DELETE FROM @schema@.spent
    WHERE spent.what = ANY (ARRAY(
        SELECT s.what FROM @schema@.spent AS s WHERE s.ends < now_ ORDER BY s.ends, s.what
        LIMIT limit_));
    GET DIAGNOSTICS spent_ = ROW_COUNT;
    RETURN entries_ + tokens_ + spent_;
END
$$;
