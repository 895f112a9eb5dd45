-- The first shape of the store. The schema is made by whoever runs this, and is on the search path.
--
-- job      waiting, running and blocked jobs only: narrow, and short-lived rows.
-- done     jobs that succeeded, were cancelled or expired, in daily partitions by their end.
-- dead     dead letters. The three together hold each job once.
-- arrival  "jobs of this lane and tenant wait since", written by whoever makes jobs wait, without
--          a lock; claims fold it into `turn` under the queue's lock.
-- turn     one row per (lane, tenant) with waiting jobs; (due, seq) is a floor: no job of the turn
--          waits before it, unless an arrival says so.
-- share    a tenant's virtual time per band; a row at or below the band's clock says nothing.
-- pulse    a band's clock, and the snapshot of the last look at its arrivals.
-- edge     of a lane: nobody stands in line before `time`; the first of its turns that are awake is
--          due at `due`, the first that sleeps at `asleep`.
-- handed   how many jobs of a queue were ever handed out.
-- band     a (queue, level).   lane  (queue, level, type, requirement), interned.
--
-- Claims write turn, share, pulse, edge, handed and arrival all the time, so that a snapshot held
-- open anywhere fills them with dead rows. Their indexes meet the living first: see sql/turns.sql.
--
-- Waiting jobs are changed only under the advisory lock of their queue; adding one needs none.
-- Names are compared by their bytes: COLLATE "C" everywhere.

CREATE TABLE meta (
    name text PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO meta (name, value) VALUES ('settings', 1);

CREATE TABLE queue (
    name text COLLATE "C" PRIMARY KEY,
    max_wait bigint NOT NULL DEFAULT 60000,
    hold text,
    removed boolean NOT NULL DEFAULT false  -- listed only while it has jobs
);

CREATE TABLE brought (
    queue text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL        -- whose token has brought the queue
);
CREATE INDEX brought_by ON brought (tenant);

CREATE TABLE band (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    level smallint NOT NULL,
    UNIQUE (queue, level)
);

CREATE TABLE lane (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    band integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    level smallint NOT NULL,
    type text COLLATE "C" NOT NULL,
    requirement text COLLATE "C" NOT NULL,
    UNIQUE (queue, level, type, requirement)
);

CREATE TABLE tenant (
    name text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL DEFAULT 1,
    hold text
);

CREATE TABLE type_setting (
    name text COLLATE "C" PRIMARY KEY,
    hold text
);

CREATE SEQUENCE turn_version;

CREATE TABLE handed (
    queue text COLLATE "C" NOT NULL,
    handouts bigint NOT NULL
);
CREATE INDEX handed_newest ON handed (queue, handouts DESC);

CREATE TABLE pulse (
    band integer NOT NULL,
    version bigint NOT NULL,
    clock bigint NOT NULL,
    seen pg_snapshot
);
CREATE INDEX pulse_newest ON pulse (band, version DESC);

CREATE TABLE edge (
    lane integer NOT NULL,
    version bigint NOT NULL,
    time bigint NOT NULL,
    due bigint NOT NULL,          -- 2^63 - 1: nobody is awake
    asleep bigint NOT NULL        -- 2^63 - 1: nobody sleeps
);
CREATE INDEX edge_newest ON edge (lane, version DESC);

CREATE TABLE share (
    band integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    time bigint NOT NULL          -- only grows
);
CREATE INDEX share_newest ON share (band, tenant, time DESC);

CREATE TABLE turn (
    lane integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    awake smallint NOT NULL,      -- 1 stands in line · 0 sleeps until `due` · 2 its tenant is held
                                  -- 3 has no jobs
    time bigint NOT NULL,         -- place in line while awake; may be behind the tenant's share
    due bigint NOT NULL,          -- no job of the turn waits before (due, seq)
    seq bigint NOT NULL
);
CREATE INDEX turn_newest ON turn (tenant, lane, version DESC);
-- Both are of those in line. Which one serves is not left to statistics, which know nothing of rows
-- that live for a second: each has a condition, always true, that only its own queries repeat.
CREATE INDEX turn_in_line ON turn (lane, time, tenant) WHERE awake = 1 AND time >= 0;
CREATE INDEX turn_longest ON turn (lane, due, seq) WHERE awake = 1 AND due >= 0;
CREATE INDEX turn_asleep ON turn (lane, due, seq) WHERE awake = 0;

CREATE TABLE arrival (
    lane integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    due bigint NOT NULL,          -- of the first of them
    seq bigint NOT NULL,
    xact xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX arrival_new ON arrival (lane, xact);

-- When leases were last written, so that a clock that went back is noticed: by renewals here, by
-- claims in `request`.
CREATE TABLE tick (
    at bigint NOT NULL
);
CREATE INDEX tick_newest ON tick (at DESC);

-- How far the search for ended leases has come: none ended before `clean`, as far as one looked;
-- `whole` is when one last looked at all.
CREATE TABLE sweep (
    version bigint NOT NULL,
    clean bigint NOT NULL,
    whole bigint NOT NULL
);
CREATE INDEX sweep_newest ON sweep (version DESC);

CREATE SEQUENCE job_seq CACHE 1;

CREATE TABLE job (
    seq bigint NOT NULL,
    id uuid PRIMARY KEY,
    lane integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    state text NOT NULL,          -- waiting · running · blocked
    due bigint NOT NULL,
    created bigint NOT NULL,
    args bytea NOT NULL,
    extras text,                  -- retry, timeout, tags, metadata, secrets given by the submission
    delivery text,                -- NULL is at_least_once
    cost integer NOT NULL,
    size integer NOT NULL,
    schedule text,
    generation integer NOT NULL DEFAULT 0,
    lease integer NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    losses integer NOT NULL DEFAULT 0,
    suspect boolean NOT NULL DEFAULT false,
    hold text,                    -- who, why, when; NULL is not held
    cancel text,                  -- who, why, when a cancel was requested
    nonce text,
    worker text,
    handout bigint,
    claimed bigint,
    expires bigint,               -- end of the lease; set exactly while running
    lease_ms bigint,
    error text,
    fingerprint text,
    started integer               -- the lease whose start was marked; at most once only
) WITH (fillfactor = 80);
CREATE INDEX job_waiting ON job (lane, tenant, due, seq) WHERE state = 'waiting' AND hold IS NULL;
-- Never to be taken for the index above: see turn_in_line.
CREATE INDEX job_newest ON job (seq) WHERE state = 'waiting' AND hold IS NULL AND seq > 0;
CREATE INDEX job_running ON job (expires) WHERE state = 'running';
-- The tenant only so that it can be read from the index: one more index would cost every job.
CREATE INDEX job_held ON job (seq, tenant) WHERE state <> 'running' AND (hold IS NOT NULL OR state = 'blocked');

CREATE TABLE done (
    seq bigint NOT NULL,
    id uuid NOT NULL,
    lane integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    state text NOT NULL,          -- succeeded · cancelled · expired
    due bigint NOT NULL,
    created bigint NOT NULL,
    args bytea NOT NULL,
    extras text,
    delivery text,
    cost integer NOT NULL,
    size integer NOT NULL,
    schedule text,
    generation integer NOT NULL,
    lease integer NOT NULL,
    attempt integer NOT NULL,
    crashes integer NOT NULL,
    losses integer NOT NULL,
    suspect boolean NOT NULL,
    cancel text,
    nonce text,
    worker text,
    handout bigint,
    claimed bigint,
    finished bigint NOT NULL,
    reason text,
    result bytea,
    result_note text,
    error text,
    fingerprint text
) PARTITION BY RANGE (finished);
CREATE INDEX done_id ON done (id);
CREATE INDEX done_succeeded ON done (seq) WHERE state = 'succeeded';
CREATE INDEX done_rest ON done (state, seq) WHERE state <> 'succeeded';
CREATE INDEX done_finished ON done (finished, seq);
CREATE TABLE done_other PARTITION OF done DEFAULT;

CREATE TABLE dead (LIKE done INCLUDING DEFAULTS);
ALTER TABLE dead ADD PRIMARY KEY (id);
CREATE INDEX dead_seq ON dead (seq);
CREATE INDEX dead_finished ON dead (finished);

CREATE TABLE attempt (
    job_id uuid NOT NULL,
    generation integer NOT NULL,
    lease integer NOT NULL,
    nonce text NOT NULL,
    number integer NOT NULL,
    worker text NOT NULL,
    outcome text NOT NULL,
    started bigint NOT NULL,
    finished bigint NOT NULL,
    error text,
    PRIMARY KEY (job_id, generation, lease)
);

CREATE TABLE log (
    job_id uuid NOT NULL,
    lease integer NOT NULL,
    number integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (job_id, lease, number)
);
ALTER TABLE log ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE progress (
    job_id uuid PRIMARY KEY,
    lease integer NOT NULL,
    value text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE idempotency (
    tenant text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    body text NOT NULL,
    job_id uuid NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (tenant, scope, key)
);
CREATE INDEX idempotency_age ON idempotency (created);

CREATE TABLE request (
    nonce text PRIMARY KEY,
    at bigint NOT NULL
);
CREATE INDEX request_age ON request (at);

CREATE TABLE worker (
    id text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    queues text NOT NULL,
    slots integer NOT NULL,
    version_slot integer NOT NULL DEFAULT 0,
    running integer NOT NULL DEFAULT 0,
    unstarted uuid[] NOT NULL DEFAULT '{}',  -- claimed jobs whose handlers were not called
    joined bigint NOT NULL,
    beat bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE worker_type (
    worker text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (worker, name)
);

CREATE TABLE type_version (
    name text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    schema text NOT NULL,
    options text NOT NULL,
    seen bigint NOT NULL,
    PRIMARY KEY (name, hash)
);

CREATE TABLE role (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    until bigint NOT NULL
);

-- Rows of these live for seconds: sweep early, by numbers and not by share.
ALTER TABLE job SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                     autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE turn SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                      autovacuum_vacuum_cost_delay = 0);
ALTER TABLE arrival SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                         autovacuum_vacuum_cost_delay = 0);
ALTER TABLE share SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                       autovacuum_vacuum_cost_delay = 0);
ALTER TABLE pulse SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                       autovacuum_vacuum_cost_delay = 0);
ALTER TABLE edge SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                      autovacuum_vacuum_cost_delay = 0);
ALTER TABLE handed SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                        autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tick SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                      autovacuum_vacuum_cost_delay = 0);
ALTER TABLE sweep SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                       autovacuum_vacuum_cost_delay = 0);
ALTER TABLE request SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
                         autovacuum_vacuum_cost_delay = 0);

-- Schedules: calendars that make jobs, and what became of their occurrences.
--
-- schedule  one row each. `wake` is when it is to be handed out: when it is due, when the lease of
--           whoever has it ends, or when something happened to it; never before it was written.
-- run       one row per occurrence that got a job or was skipped, or per stretch of skipped ones.
--           Whoever writes runs has locked their schedule.
-- vigil     how far due schedules have been handed out: none wakes before `clean`, as far as one
--           looked; `whole` is when one last looked at all. See `sweep`.

CREATE TABLE schedule (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,     -- unique in its tenant
    key text COLLATE "C" GENERATED ALWAYS AS (tenant || E'\x01' || id) STORED PRIMARY KEY,
    spec text NOT NULL,
    type text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    cursor bigint NOT NULL,
    due bigint,                   -- NULL: never
    wake bigint,                  -- NULL: not before something happens to it
    created bigint NOT NULL,
    changed bigint NOT NULL,
    fired bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    good bigint NOT NULL DEFAULT 0,   -- its runs that succeeded and are kept
    rest bigint NOT NULL DEFAULT 0,   -- its other runs that have ended and are kept
    last_due bigint,
    last_job uuid,
    active uuid,                  -- the job of the run that others must not overlap; may have ended
    hold text,                    -- who, why, when; NULL is not held
    backfill text,                -- from, to, cursor, limit, made; NULL is none
    zones text NOT NULL DEFAULT ''
) WITH (fillfactor = 70);
CREATE INDEX schedule_wake ON schedule (wake, due, key) WHERE wake IS NOT NULL AND hold IS NULL;

CREATE TABLE run (
    schedule text COLLATE "C" NOT NULL,   -- its key
    due bigint NOT NULL,
    kind text NOT NULL,           -- due · trigger · backfill
    state text NOT NULL,          -- queued · started · skipped · or how its job ended
    at bigint NOT NULL,
    job uuid,                     -- of a skipped trigger: the one that was not made
    reason text,
    first bigint,
    number bigint,                -- NULL: very many
    finished bigint,
    PRIMARY KEY (schedule, due)
);
CREATE INDEX run_job ON run (job) WHERE job IS NOT NULL;
CREATE INDEX run_queued ON run (schedule, due) WHERE state = 'queued';
CREATE INDEX run_backfill ON run (schedule, due) WHERE kind = 'backfill' AND state = 'started';
CREATE INDEX run_good ON run (schedule, due) WHERE state = 'succeeded';
CREATE INDEX run_rest ON run (schedule, due)
    WHERE state <> 'queued' AND state <> 'started' AND state <> 'succeeded';

CREATE TABLE vigil (
    version bigint NOT NULL,
    clean bigint NOT NULL,
    whole bigint NOT NULL
);
CREATE INDEX vigil_newest ON vigil (version DESC);

ALTER TABLE schedule SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                          autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE run SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
                     autovacuum_vacuum_cost_delay = 0);
ALTER TABLE vigil SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                       autovacuum_vacuum_cost_delay = 0);

-- Who may call a service, and what they have changed.
--
-- token  one row per token that was made; the token itself stands nowhere, only its digest.
-- spent  what is good for a single use and was used, until nobody would take it any more.
-- audit  one row per change that somebody made.

CREATE TABLE spent (
    what text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,         -- who used it
    ends bigint NOT NULL
);
CREATE INDEX spent_ends ON spent (ends, what);

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

-- What workers did, minute by minute, for a day.
--
-- activity  one row per minute in which something was tallied; the counts are in the order of
--           `Tally.numbers`.
-- tally     the last tally of each worker, so that one that is repeated counts once.

CREATE TABLE activity (
    minute bigint PRIMARY KEY,
    counts bigint[] NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tally (
    worker text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX tally_age ON tally (at);
