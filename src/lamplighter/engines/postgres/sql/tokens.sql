-- put_token, revoke_token and their reads: who may call a service. Index: the key of token.

-- put_token: store a token, unless its prefix is taken. Guard: unique prefix. With the rights of its
-- caller: only the owner of the store lets somebody in.
-- out  done | already | conflict
CREATE OR REPLACE FUNCTION put_token(
    prefix_ text, digest_ text, name_ text, scopes_ text, tenant_ text, lifetime_ bigint, by_ text
) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
    found_ text;
BEGIN
    INSERT INTO token (prefix, digest, name, scopes, tenant, created, created_by, expires, ended)
    VALUES (prefix_, digest_, name_, scopes_, tenant_, now_, by_, now_ + lifetime_,
            now_ + lifetime_)
    ON CONFLICT (prefix) DO NOTHING;
    IF FOUND THEN
        RETURN 'done';
    END IF;
    SELECT token.digest INTO found_ FROM token WHERE token.prefix = prefix_;
    RETURN CASE WHEN found_ = digest_ THEN 'already' ELSE 'conflict' END;
END
$$;

-- revoke_token: end a token; the first mark stays. Lock: the token. As the owner of the store.
-- out  done | already | unknown
CREATE OR REPLACE FUNCTION revoke_token(prefix_ text, mark_ text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp AS $$
DECLARE
    now_ bigint := @schema@.now_ms();
BEGIN
    UPDATE @schema@.token AS t
    SET revoked = @schema@.mark_at(mark_, now_), ended = least(coalesce(t.ended, now_), now_)
    WHERE t.prefix = prefix_ AND t.revoked IS NULL;
    IF FOUND THEN
        RETURN 'done';
    END IF;
    PERFORM FROM @schema@.token AS t WHERE t.prefix = prefix_;
    RETURN CASE WHEN FOUND THEN 'already' ELSE 'unknown' END;
END
$$;

-- read_token: one token, if it is there, and the store's now.
CREATE OR REPLACE FUNCTION read_token(prefix_ text) RETURNS TABLE (
    prefix text, digest text, name text, scopes text, tenant text, created bigint,
    created_by text, expires bigint, revoked text, now bigint
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off AS $$
    SELECT token.prefix, token.digest, token.name, token.scopes, token.tenant, token.created,
           token.created_by, token.expires, token.revoked, now_ms()
    FROM token
    WHERE token.prefix = prefix_
$$;

-- find_tokens: tokens by their prefixes, behind one of them, and the store's now.
CREATE OR REPLACE FUNCTION find_tokens(after_ text, limit_ integer) RETURNS TABLE (
    prefix text, digest text, name text, scopes text, tenant text, created bigint,
    created_by text, expires bigint, revoked text, now bigint
)
LANGUAGE sql STABLE @bounded@ AS $$
    SELECT token.prefix, token.digest, token.name, token.scopes, token.tenant, token.created,
           token.created_by, token.expires, token.revoked, now_ms()
    FROM token
    WHERE token.prefix > after_
    ORDER BY token.prefix
    LIMIT limit_
$$;
