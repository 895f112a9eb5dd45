-- Tokens, audit and single uses: who may call a service, and what was changed through it. Indexes: the
-- keys of token and spent.

-- name: put
-- in: prefix, digest, name, scopes, tenant, now, by, expires
INSERT INTO token (prefix, digest, name, scopes, tenant, created, created_by, expires, ended)
VALUES (:prefix, :digest, :name, :scopes, :tenant, :now, :by, :expires, :expires)
ON CONFLICT (prefix) DO NOTHING;

-- name: revoke
-- The first mark stays.
-- in: mark, now, prefix
UPDATE token
SET revoked = :mark, ended = min(coalesce(ended, :now), :now)
WHERE prefix = :prefix AND revoked IS NULL;

-- name: token
-- in: prefix
SELECT prefix, digest, name, scopes, tenant, created, created_by, expires, revoked
FROM token
WHERE prefix = :prefix;

-- name: tokens
-- in: after, limit
SELECT prefix, digest, name, scopes, tenant, created, created_by, expires, revoked
FROM token
WHERE prefix > :after
ORDER BY prefix
LIMIT :limit;

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

-- name: spend
-- in: what, holder, ends
INSERT INTO spent (what, holder, ends)
VALUES (:what, :holder, :ends)
ON CONFLICT (what) DO NOTHING;

-- name: holder
-- in: what
SELECT holder FROM spent WHERE what = :what;

-- name: prune_audit
-- Index: audit_at.
-- in: before, limit
DELETE FROM audit
WHERE seq IN (SELECT seq FROM audit WHERE at < :before ORDER BY at, seq LIMIT :limit);

-- name: prune_tokens
-- Index: token_ended.
-- in: before, limit
DELETE FROM token
WHERE prefix IN (
    SELECT prefix FROM token WHERE ended IS NOT NULL AND ended < :before ORDER BY ended LIMIT :limit
);

-- name: prune_spent
-- Index: spent_ends.
-- in: now, limit
DELETE FROM spent
WHERE what IN (SELECT what FROM spent WHERE ends < :now ORDER BY ends LIMIT :limit);
