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
    hold TEXT,
    removed INTEGER NOT NULL DEFAULT 0  -- 1 is listed only while it has jobs
) WITHOUT ROWID;

CREATE TABLE brought (
    queue TEXT PRIMARY KEY,
    tenant TEXT NOT NULL          -- whose token has brought the queue
) WITHOUT ROWID;
CREATE INDEX brought_by ON brought (tenant);

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
    fingerprint TEXT,
    started INTEGER NOT NULL DEFAULT 0  -- the lease whose start was marked; at most once only
);
CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_waiting ON job (lane, tenant, due, seq) WHERE state = 'waiting' AND hold IS NULL;
CREATE INDEX job_running ON job (expires) WHERE state = 'running';
CREATE INDEX job_succeeded ON job (finished) WHERE state = 'succeeded';
CREATE INDEX job_cancelled ON job (finished) WHERE state = 'cancelled';
CREATE INDEX job_expired ON job (finished) WHERE state = 'expired';
CREATE INDEX job_dead ON job (finished) WHERE state = 'dead';
CREATE INDEX job_blocked ON job (seq) WHERE state = 'blocked';
CREATE INDEX job_held ON job (tenant) WHERE state = 'waiting' AND hold IS NOT NULL;

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
    nonce TEXT NOT NULL DEFAULT '',
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
    version_slot INTEGER NOT NULL DEFAULT 0,
    running INTEGER NOT NULL DEFAULT 0,
    unstarted TEXT NOT NULL DEFAULT '',  -- ids of claimed jobs whose handlers were not called
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

-- What attempts say while they run: pieces of their logs, and how far they have come.
--
-- log       one row per piece of an attempt's log; the attempt is named by its lease number.
-- progress  how far a job's attempt said it had come; one of an older lease says nothing, so that
--           a claim need not clear it.

-- Pieces are up to 16 KiB: with a rowid the key's index stays narrow and pieces are appended.
CREATE TABLE log (
    job_id TEXT NOT NULL,
    lease INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (job_id, lease, number)
);

-- Not a column of job: a row whose length changes is written anew with all its arguments.
CREATE TABLE progress (
    job_id TEXT PRIMARY KEY,
    lease INTEGER NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Schedules, and what became of their occurrences.
--
-- schedule          one row per schedule; what it is to do stands in `spec`, which nobody reads here.
-- run               one row per occurrence that is resolved: its job, or why there is none.
-- removed_schedule  schedules that are gone and may have left runs behind, which prune removes.

CREATE TABLE schedule (
    -- Runs name it by its number, which is never given again: what a schedule of the same name
    -- left behind does not become the new one's.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,             -- unique in its tenant
    type TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    cursor INTEGER NOT NULL,      -- all occurrences up to here are resolved
    due INTEGER,                  -- its next occurrence; NULL is never
    wake INTEGER,                 -- when it is to be handed out next; NULL is never
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    fired INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    last_due INTEGER,
    last_job TEXT,
    active TEXT,                  -- job of the run by which others are judged
    hold TEXT,                    -- who, why, when; NULL is not held
    backfill TEXT,
    zones TEXT NOT NULL,
    spec TEXT NOT NULL
);
CREATE UNIQUE INDEX schedule_id ON schedule (tenant, id);
CREATE INDEX schedule_awake ON schedule (wake, tenant, id) WHERE wake IS NOT NULL AND hold IS NULL;

CREATE TABLE run (
    schedule INTEGER NOT NULL,
    due INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    job_id TEXT,
    asked TEXT,                   -- the job that a trigger wanted and did not get
    reason TEXT,
    first INTEGER,
    count INTEGER,
    finished INTEGER,
    PRIMARY KEY (schedule, due)
) WITHOUT ROWID;
CREATE INDEX run_job ON run (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX run_asked ON run (asked) WHERE asked IS NOT NULL;
CREATE INDEX run_queued ON run (schedule, due) WHERE state = 'queued';
CREATE INDEX run_backfilling ON run (schedule) WHERE kind = 'backfill' AND state = 'started';
CREATE INDEX run_succeeded ON run (schedule, due) WHERE state = 'succeeded';
CREATE INDEX run_failed ON run (schedule, due)
WHERE state IN ('skipped', 'dead', 'cancelled', 'expired');

CREATE TABLE removed_schedule (
    number INTEGER PRIMARY KEY
);

-- Who may call a service, and what they have changed.
--
-- token  one row per token that was made; the token itself stands nowhere, only its digest.
-- spent  what is good for a single use and was used, until nobody would take it any more.
-- audit  one row per change that somebody made.

CREATE TABLE spent (
    what TEXT PRIMARY KEY,
    holder TEXT NOT NULL,         -- who used it
    ends INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX spent_ends ON spent (ends);

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

-- What workers did, minute by minute, for a day.
--
-- activity  one row per minute in which something was tallied; the counts are a JSON array in the
--           order of `Tally.numbers`.
-- tally     the last tally of each worker, so that one that is repeated counts once.

CREATE TABLE activity (
    minute INTEGER PRIMARY KEY,
    counts TEXT NOT NULL
);

CREATE TABLE tally (
    worker TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tally_age ON tally (at);
