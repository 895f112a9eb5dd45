-- Schedules: calendars that make jobs, and what became of their occurrences.
--
-- schedule  one row each. `wake` is when it is to be handed out: when it is due, when the lease of
--           whoever has it ends, or when something happened to it; never before it was written.
-- run       one row per occurrence that got a job or was skipped, or per stretch of skipped ones.
--           Whoever writes runs has locked their schedule.
-- vigil     how far due schedules have been handed out: none wakes before `clean`, as far as one
--           looked; `whole` is when one last looked at all. See `sweep`.

CREATE TABLE schedule (
    id text COLLATE "C" PRIMARY KEY,
    spec text NOT NULL,
    tenant text COLLATE "C" NOT NULL,
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
CREATE INDEX schedule_wake ON schedule (wake, due, id) WHERE wake IS NOT NULL AND hold IS NULL;

CREATE TABLE run (
    schedule text COLLATE "C" NOT NULL,
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
