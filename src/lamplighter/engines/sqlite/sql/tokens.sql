-- put_token, revoke_token and their reads: who may call a service. Index: the key of token.

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
