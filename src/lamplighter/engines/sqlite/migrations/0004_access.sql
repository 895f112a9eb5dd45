-- Who may call a service, and what they have changed.
--
-- token  one row per token that was made; the token itself stands nowhere, only its digest.
-- audit  one row per change that somebody made.

CREATE TABLE token (
    prefix TEXT PRIMARY KEY,      -- by which it is found
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,         -- with blanks between them
    tenant TEXT,                  -- NULL is all
    created INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires INTEGER,              -- NULL is never
    revoked TEXT,                 -- who, why, when; NULL is not revoked
    ended INTEGER                 -- when it stops or has stopped to be good; NULL is never
) WITHOUT ROWID;
CREATE INDEX token_ended ON token (ended) WHERE ended IS NOT NULL;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    answer TEXT NOT NULL,
    tenant TEXT,
    reason TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_id ON audit (id);
CREATE INDEX audit_tenant ON audit (tenant, seq);
CREATE INDEX audit_at ON audit (at);
