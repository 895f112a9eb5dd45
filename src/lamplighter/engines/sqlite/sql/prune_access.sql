-- prune_access: remove old audit entries, tokens that have long ended, and spent marks.

-- name: audit
-- Index: audit_at.
-- in: before, limit
DELETE FROM audit
WHERE seq IN (SELECT seq FROM audit WHERE at < :before ORDER BY at, seq LIMIT :limit);

-- name: tokens
-- Index: token_ended.
-- in: before, limit
DELETE FROM token
WHERE prefix IN (
    SELECT prefix FROM token WHERE ended IS NOT NULL AND ended < :before ORDER BY ended LIMIT :limit
);

-- name: spent
-- Index: spent_ends.
-- in: now, limit
DELETE FROM spent
WHERE what IN (SELECT what FROM spent WHERE ends < :now ORDER BY ends LIMIT :limit);
