-- note_audit and its reads: what somebody has changed.

-- note_audit: add entries in their order; one that is there already is left as it is.
-- Guard: unique id. An entry is nobody's where `owned_` is false. As the owner of the store: those
-- who run jobs add to the log, and change nothing in it.
CREATE OR REPLACE FUNCTION note_audit(
    ids_ text[], who_ text[], actions_ text[], objects_ text[], answers_ text[], tenants_ text[],
    owned_ boolean[], reasons_ text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @schema@, pg_temp AS $$
DECLARE
    now_ bigint := @schema@.now_ms();
BEGIN
    INSERT INTO @schema@.audit (id, at, who, action, object, answer, tenant, reason)
    SELECT u.id, now_, u.who, u.action, u.object, u.answer,
           CASE WHEN u.owned THEN u.tenant END, u.reason
    FROM ROWS FROM (
             pg_catalog.unnest(ids_), pg_catalog.unnest(who_), pg_catalog.unnest(actions_),
             pg_catalog.unnest(objects_), pg_catalog.unnest(answers_),
             pg_catalog.unnest(tenants_), pg_catalog.unnest(owned_),
             pg_catalog.unnest(reasons_))
         WITH ORDINALITY AS u(id, who, action, object, answer, tenant, owned, reason, n)
    ORDER BY u.n
    ON CONFLICT (id) DO NOTHING;
END
$$;

-- find_audit: entries before a place, the newest first; of one tenant, or of all.
-- Index: the key of audit, audit_tenant.
CREATE OR REPLACE FUNCTION find_audit(tenant_ text, before_ bigint, limit_ integer) RETURNS TABLE (
    seq bigint, id text, at bigint, who text, action text, object text, answer text, tenant text,
    reason text
)
LANGUAGE plpgsql STABLE @bounded@ AS $$
#variable_conflict use_column
BEGIN
    IF tenant_ IS NULL THEN
        RETURN QUERY
            SELECT a.seq, a.id, a.at, a.who, a.action, a.object, a.answer, a.tenant, a.reason
            FROM audit AS a
            WHERE a.seq < before_
            ORDER BY a.seq DESC
            LIMIT limit_;
    ELSE
        RETURN QUERY
            SELECT a.seq, a.id, a.at, a.who, a.action, a.object, a.answer, a.tenant, a.reason
            FROM audit AS a
            WHERE a.tenant = tenant_ AND a.seq < before_
            ORDER BY a.seq DESC
            LIMIT limit_;
    END IF;
END
$$;
