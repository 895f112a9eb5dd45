-- The first shape of the store.
--
-- job    one row per job, whatever its state; `seq` is the store's own order of arrival.
-- turn   one row per (lane, tenant) that has waiting jobs: awake turns stand in line by `time`.
-- share  a tenant's virtual time per band; a row at or below the band's clock says nothing.
-- band   a (queue, level) with its clock.   lane  (queue, level, type, requirement), interned.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('version', 1);

CREATE TABLE queue (
    name TEXT PRIMARY KEY,
    handouts INTEGER NOT NULL DEFAULT 0,
    max_wait INTEGER NOT NULL DEFAULT 60000,
    hold TEXT
) WITHOUT ROWID;

CREATE TABLE band (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    level INTEGER NOT NULL,
    clock INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, level)
);

CREATE TABLE lane (
    id INTEGER PRIMARY KEY,
    band INTEGER NOT NULL,
    type TEXT NOT NULL,
    requirement TEXT NOT NULL,
    UNIQUE (band, type, requirement)
);

CREATE TABLE tenant (
    name TEXT PRIMARY KEY,
    weight INTEGER NOT NULL DEFAULT 1,
    hold TEXT
) WITHOUT ROWID;

CREATE TABLE type_setting (
    name TEXT PRIMARY KEY,
    hold TEXT
) WITHOUT ROWID;

CREATE TABLE share (
    band INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (band, tenant)
) WITHOUT ROWID;

CREATE TABLE turn (
    lane INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    awake INTEGER NOT NULL,       -- 1 stands in line · 0 sleeps until `due` · 2 its tenant is held
    time INTEGER NOT NULL,        -- place in line while awake; may be behind the tenant's share
    due INTEGER NOT NULL,         -- due time and sequence of its first job
    seq INTEGER NOT NULL,
    PRIMARY KEY (lane, tenant)
) WITHOUT ROWID;
CREATE INDEX turn_in_line ON turn (lane, time, tenant) WHERE awake = 1;
CREATE INDEX turn_longest ON turn (lane, due, seq) WHERE awake = 1;
CREATE INDEX turn_asleep ON turn (lane, due, seq) WHERE awake = 0;

CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    lane INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    created INTEGER NOT NULL,
    args BLOB NOT NULL,
    extras TEXT,                  -- retry, timeout, tags, metadata given by the submission
    delivery TEXT,                -- NULL is at_least_once
    cost INTEGER NOT NULL,
    size INTEGER NOT NULL,
    schedule TEXT,
    generation INTEGER NOT NULL DEFAULT 0,
    lease INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    suspect INTEGER NOT NULL DEFAULT 0,
    hold TEXT,                    -- who, why, when; NULL is not held
    cancel TEXT,                  -- who, why, when a cancel was requested
    nonce TEXT,
    worker TEXT,
    handout INTEGER,
    claimed INTEGER,
    expires INTEGER,              -- end of the lease; set exactly while running
    lease_ms INTEGER,
    finished INTEGER,
    reason TEXT,
    result BLOB,
    result_note TEXT,
    error TEXT,
    fingerprint TEXT
);
CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_waiting ON job (lane, tenant, due, seq) WHERE state = 'waiting' AND hold IS NULL;
CREATE INDEX job_running ON job (expires) WHERE state = 'running';
CREATE INDEX job_succeeded ON job (finished) WHERE state = 'succeeded';
CREATE INDEX job_cancelled ON job (finished) WHERE state = 'cancelled';
CREATE INDEX job_expired ON job (finished) WHERE state = 'expired';
CREATE INDEX job_dead ON job (finished) WHERE state = 'dead';
CREATE INDEX job_blocked ON job (seq) WHERE state = 'blocked';
CREATE INDEX job_held ON job (seq) WHERE state = 'waiting' AND hold IS NOT NULL;

CREATE TABLE attempt (
    job_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    outcome TEXT NOT NULL,
    started INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (job_id, generation, lease)
) WITHOUT ROWID;

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    job_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (tenant, scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created);

CREATE TABLE request (
    nonce TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX request_age ON request (at);

CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT NOT NULL,
    slots INTEGER NOT NULL,
    running INTEGER NOT NULL DEFAULT 0,
    joined INTEGER NOT NULL,
    beat INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE worker_type (
    worker TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (worker, name)
) WITHOUT ROWID;

CREATE TABLE type_version (
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    queue TEXT NOT NULL,
    schema TEXT NOT NULL,
    options TEXT NOT NULL,
    seen INTEGER NOT NULL,
    PRIMARY KEY (name, hash)
) WITHOUT ROWID;

CREATE TABLE role (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
