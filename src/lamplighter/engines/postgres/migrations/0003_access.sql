-- Who may call a service, and what they have changed.
--
-- token  one row per token that was made; the token itself stands nowhere, only its digest.
-- audit  one row per change that somebody made.

CREATE TABLE token (
    prefix text COLLATE "C" PRIMARY KEY,
    digest text NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,         -- with blanks between them
    tenant text COLLATE "C",      -- NULL: all
    created bigint NOT NULL,
    created_by text NOT NULL,
    expires bigint,               -- NULL: never
    revoked text,                 -- who, why, when; NULL is not revoked
    ended bigint                  -- when it stops or has stopped to be good; NULL: never
);
CREATE INDEX token_ended ON token (ended, prefix) WHERE ended IS NOT NULL;

CREATE TABLE audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    answer text NOT NULL,
    tenant text COLLATE "C",
    reason text NOT NULL
);
CREATE UNIQUE INDEX audit_id ON audit (id);
CREATE INDEX audit_tenant ON audit (tenant, seq);
CREATE INDEX audit_at ON audit (at, seq);
