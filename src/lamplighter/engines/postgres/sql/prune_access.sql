-- prune_access: remove old audit entries, and tokens that have long ended.
-- Index: audit_at, token_ended.
-- out  how many are gone
CREATE OR REPLACE FUNCTION prune_access(keep_ bigint, limit_ integer) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    before_ bigint := now_ms() - keep_;
    entries_ bigint;
    tokens_ bigint;
BEGIN
    -- What a server forgets of this is done again.
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM audit
    WHERE audit.seq = ANY (ARRAY(
        SELECT a.seq FROM audit AS a WHERE a.at < before_ ORDER BY a.at, a.seq LIMIT limit_));
    GET DIAGNOSTICS entries_ = ROW_COUNT;
    DELETE FROM token
    WHERE token.prefix = ANY (ARRAY(
        SELECT t.prefix FROM token AS t WHERE t.ended < before_ ORDER BY t.ended, t.prefix
        LIMIT limit_));
    GET DIAGNOSTICS tokens_ = ROW_COUNT;
    RETURN entries_ + tokens_;
END
$$;
