-- A store of version 1 as its program left it: one job or more in every state, at 1700000013500.
BEGIN TRANSACTION;
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
INSERT INTO "attempt" VALUES('01HF7YAT000000000000000001',0,1,1,'worker-1','failed',1700000000000,1700000002000,'{"type": "ValueError", "message": "boom", "traceback": "", "fingerprint": "boom", "kinds": ["ValueError"]}');
INSERT INTO "attempt" VALUES('01HF7YAT000000000000000001',0,2,2,'worker-1','failed',1700000012000,1700000012500,'{"type": "ValueError", "message": "boom", "traceback": "", "fingerprint": "boom", "kinds": ["ValueError"]}');
INSERT INTO "attempt" VALUES('01HF7YAT000000000000000003',0,1,1,'worker-1','failed',1700000013200,1700000013500,'{"type": "ValueError", "message": "boom", "traceback": "", "fingerprint": "boom", "kinds": ["ValueError"]}');
CREATE TABLE band (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    level INTEGER NOT NULL,
    clock INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, level)
);
INSERT INTO "band" VALUES(1,'default',2,3000000);
INSERT INTO "band" VALUES(2,'default',1,0);
CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    job_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (tenant, scope, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('default','','order-1','body','01HF7YAT000000000000000001',1700000000000);
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
INSERT INTO "job" VALUES(1,'01HF7YAT000000000000000001',1,'default','dead',1700000012000,1700000000000,X'7B226E223A20317D',NULL,NULL,1,8,NULL,0,2,2,0,0,0,NULL,NULL,'0000000000000002','worker-1',2,1700000012000,NULL,30000,1700000012500,'failed 2 of 2 attempts',NULL,NULL,'{"type": "ValueError", "message": "boom", "traceback": "", "fingerprint": "boom", "kinds": ["ValueError"]}','boom');
INSERT INTO "job" VALUES(2,'01HF7YAT000000000000000002',1,'default','succeeded',1700000012500,1700000012500,X'7B226E223A20327D',NULL,NULL,1,8,NULL,0,1,0,0,0,0,NULL,NULL,'0000000000000003','worker-1',3,1700000012500,NULL,30000,1700000013200,NULL,X'22646F6E6522',NULL,NULL,NULL);
INSERT INTO "job" VALUES(3,'01HF7YAT000000000000000003',1,'default','waiting',1700000023500,1700000013200,X'7B226E223A20337D',NULL,NULL,1,8,NULL,0,1,1,0,0,0,NULL,NULL,'0000000000000004','worker-1',4,1700000013200,NULL,30000,NULL,NULL,NULL,NULL,'{"type": "ValueError", "message": "boom", "traceback": "", "fingerprint": "boom", "kinds": ["ValueError"]}','boom');
INSERT INTO "job" VALUES(4,'01HF7YAT000000000000000004',2,'blue','running',1700000013500,1700000013500,X'7B226E223A20347D',NULL,NULL,1,8,NULL,0,1,0,0,0,0,NULL,NULL,'0000000000000005','worker-1',5,1700000013500,1700000043500,30000,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(5,'01HF7YAT000000000000000005',1,'green','waiting',1700000013500,1700000013500,X'7B226E223A20357D',NULL,NULL,1,8,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(6,'01HF7YAT000000000000000006',1,'blue','waiting',1700000013500,1700000013500,X'7B226E223A20367D',NULL,NULL,1,8,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(7,'01HF7YAT000000000000000007',1,'default','waiting',1700003613500,1700000013500,X'7B226E223A20377D',NULL,NULL,1,8,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(8,'01HF7YAT000000000000000008',1,'default','cancelled',1700000013500,1700000013500,X'7B226E223A20387D',NULL,NULL,1,8,NULL,0,0,0,0,0,0,NULL,'{"by": "alice", "reason": "not needed", "at": 1700000013500}',NULL,NULL,NULL,NULL,NULL,NULL,1700000013500,'not needed',NULL,NULL,NULL,NULL);
INSERT INTO "job" VALUES(9,'01HF7YAT000000000000000009',1,'default','waiting',1700000013500,1700000013500,X'7B226E223A20397D',NULL,NULL,1,8,NULL,0,0,0,0,0,0,'{"by": "submit", "reason": "submitted held", "at": 1700000013500}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE lane (
    id INTEGER PRIMARY KEY,
    band INTEGER NOT NULL,
    type TEXT NOT NULL,
    requirement TEXT NOT NULL,
    UNIQUE (band, type, requirement)
);
INSERT INTO "lane" VALUES(1,1,'work','');
INSERT INTO "lane" VALUES(2,2,'work','');
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "meta" VALUES('version',3);
CREATE TABLE queue (
    name TEXT PRIMARY KEY,
    handouts INTEGER NOT NULL DEFAULT 0,
    max_wait INTEGER NOT NULL DEFAULT 60000,
    hold TEXT
) WITHOUT ROWID;
INSERT INTO "queue" VALUES('default',5,60000,NULL);
CREATE TABLE request (
    nonce TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "request" VALUES('0000000000000001',1700000000000);
INSERT INTO "request" VALUES('0000000000000002',1700000012000);
INSERT INTO "request" VALUES('0000000000000003',1700000012500);
INSERT INTO "request" VALUES('0000000000000004',1700000013200);
INSERT INTO "request" VALUES('0000000000000005',1700000013500);
CREATE TABLE role (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE share (
    band INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (band, tenant)
) WITHOUT ROWID;
INSERT INTO "share" VALUES(1,'default',4000000);
INSERT INTO "share" VALUES(2,'blue',1000000);
CREATE TABLE tenant (
    name TEXT PRIMARY KEY,
    weight INTEGER NOT NULL DEFAULT 1,
    hold TEXT
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
INSERT INTO "turn" VALUES(1,'blue',1,3000000,1700000013500,6);
INSERT INTO "turn" VALUES(1,'default',0,4000000,1700000023500,3);
INSERT INTO "turn" VALUES(1,'green',1,3000000,1700000013500,5);
CREATE TABLE type_setting (
    name TEXT PRIMARY KEY,
    hold TEXT
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
CREATE INDEX turn_in_line ON turn (lane, time, tenant) WHERE awake = 1;
CREATE INDEX turn_longest ON turn (lane, due, seq) WHERE awake = 1;
CREATE INDEX turn_asleep ON turn (lane, due, seq) WHERE awake = 0;
CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_waiting ON job (lane, tenant, due, seq) WHERE state = 'waiting' AND hold IS NULL;
CREATE INDEX job_running ON job (expires) WHERE state = 'running';
CREATE INDEX job_succeeded ON job (finished) WHERE state = 'succeeded';
CREATE INDEX job_cancelled ON job (finished) WHERE state = 'cancelled';
CREATE INDEX job_expired ON job (finished) WHERE state = 'expired';
CREATE INDEX job_dead ON job (finished) WHERE state = 'dead';
CREATE INDEX job_blocked ON job (seq) WHERE state = 'blocked';
CREATE INDEX job_held ON job (seq) WHERE state = 'waiting' AND hold IS NOT NULL;
CREATE INDEX idempotency_age ON idempotency (created);
CREATE INDEX request_age ON request (at);
COMMIT;
