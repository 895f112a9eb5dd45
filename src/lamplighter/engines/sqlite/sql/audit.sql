-- note_audit and its reads: what somebody has changed.

-- name: note
-- Guard: unique id.
-- in: id, at, who, action, object, answer, tenant, reason
INSERT INTO audit (id, at, who, action, object, answer, tenant, reason)
VALUES (:id, :at, :who, :action, :object, :answer, :tenant, :reason)
ON CONFLICT (id) DO NOTHING;

-- name: all
-- in: before, limit
SELECT seq, id, at, who, action, object, answer, tenant, reason
FROM audit
WHERE seq < :before
ORDER BY seq DESC
LIMIT :limit;

-- name: of_tenant
-- Index: audit_tenant.
-- in: tenant, before, limit
SELECT seq, id, at, who, action, object, answer, tenant, reason
FROM audit
WHERE tenant = :tenant AND seq < :before
ORDER BY seq DESC
LIMIT :limit;
