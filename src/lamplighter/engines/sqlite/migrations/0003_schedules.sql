-- Schedules, and what became of their occurrences.
--
-- schedule          one row per schedule; what it is to do stands in `spec`, which nobody reads here.
-- run               one row per occurrence that is resolved: its job, or why there is none.
-- removed_schedule  schedules that are gone and may have left runs behind, which prune removes.

CREATE TABLE schedule (
    -- Runs name it by its number, which is never given again: what a schedule of the same name
    -- left behind does not become the new one's.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
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
CREATE UNIQUE INDEX schedule_id ON schedule (id);
CREATE INDEX schedule_awake ON schedule (wake, id) WHERE wake IS NOT NULL AND hold IS NULL;

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
