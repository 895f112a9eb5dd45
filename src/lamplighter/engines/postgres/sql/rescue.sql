-- rescue: read claims whose lease has ended; the write is settle. Index: job_running.
-- Functions without settings of their own are called only by those that have them.
-- out  the columns of a claim, and for how long it has been overdue; longest first
CREATE OR REPLACE FUNCTION rescue(limit_ integer)
RETURNS TABLE (
    id uuid, type text, args bytea, queue text, level smallint, tenant text, due bigint,
    created bigint, delivery text, extras text, attempt integer, crashes integer, losses integer,
    suspect boolean, generation integer, cost integer, schedule text, lease integer, nonce text,
    worker text, handout bigint, started boolean, overdue bigint
)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
DECLARE
    now_ bigint := now_ms();
    from_ bigint := 0;
    sweep_ record;
    first_ bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM cut_leases(now_);
    SELECT sweep.ctid AS place, sweep.clean, sweep.whole INTO sweep_
    FROM sweep ORDER BY sweep.version DESC LIMIT 1;
    -- Leases end after they are written, so that none ends where all had been seen; but one may be
    -- written late. Once a minute all are looked at, dead entries too.
    IF now_ - sweep_.whole BETWEEN 0 AND 60000 THEN
        from_ := sweep_.clean - 5000;
    END IF;
    SELECT job.expires INTO first_
    FROM job
    WHERE job.state = 'running' AND job.expires >= from_ AND job.expires <= now_
    ORDER BY job.expires
    LIMIT 1;
    IF sweep_.place IS NULL THEN
        INSERT INTO sweep (version, clean, whole)
        VALUES (nextval('turn_version'), coalesce(first_, now_), now_);
    ELSIF from_ = 0 OR coalesce(first_, now_) - sweep_.clean NOT BETWEEN 0 AND 1000 THEN
        -- Of several that sweep at once, one writes.
        UPDATE sweep
        SET version = nextval('turn_version'),
            clean = coalesce(first_, now_),
            whole = CASE WHEN from_ = 0 THEN now_ ELSE sweep.whole END
        WHERE sweep.ctid = sweep_.place;
    END IF;
    IF first_ IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT job.id, lane.type, job.args, lane.queue, lane.level, job.tenant, job.due,
               job.created, job.delivery, job.extras, job.attempt, job.crashes, job.losses,
               job.suspect, job.generation, job.cost, job.schedule, job.lease, job.nonce,
               job.worker, job.handout, job.started IS NOT DISTINCT FROM job.lease,
               now_ - job.expires
        FROM job
        JOIN lane ON lane.id = job.lane
        WHERE job.state = 'running' AND job.expires >= first_ AND job.expires <= now_
        ORDER BY job.expires
        LIMIT limit_;
END
$$;

-- cut_leases: end leases in time that a clock which went back would let live longer than they may.
-- Leases are written by claims and renewals, who leave the time; no later one, no such lease.
CREATE OR REPLACE FUNCTION cut_leases(now_ bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    last_ bigint := (SELECT tick.at FROM tick ORDER BY tick.at DESC LIMIT 1);
BEGIN
    DELETE FROM tick WHERE tick.at < last_;
    last_ := greatest(last_, (SELECT request.at FROM request ORDER BY request.at DESC LIMIT 1));
    IF last_ IS NULL OR last_ <= now_ THEN
        RETURN;
    END IF;
    PERFORM FROM job
    WHERE job.state = 'running' AND job.expires > now_ + job.lease_ms
    ORDER BY job.id
    FOR UPDATE;
    UPDATE job
    SET expires = now_ + job.lease_ms
    WHERE job.state = 'running' AND job.expires > now_ + job.lease_ms;
    DELETE FROM tick WHERE tick.at > now_;
    INSERT INTO tick (at) VALUES (now_);
    UPDATE request SET at = now_ WHERE request.at > now_;
END
$$;

-- claims_of: read the claims that a worker holds. Index: job_running, all of it.
CREATE OR REPLACE FUNCTION claims_of(worker_ text)
RETURNS TABLE (
    id uuid, type text, args bytea, queue text, level smallint, tenant text, due bigint,
    created bigint, delivery text, extras text, attempt integer, crashes integer, losses integer,
    suspect boolean, generation integer, cost integer, schedule text, lease integer, nonce text,
    worker text, handout bigint, started boolean
)
LANGUAGE plpgsql @planned@ AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT job.id, lane.type, job.args, lane.queue, lane.level, job.tenant, job.due,
               job.created, job.delivery, job.extras, job.attempt, job.crashes, job.losses,
               job.suspect, job.generation, job.cost, job.schedule, job.lease, job.nonce,
               job.worker, job.handout, job.started IS NOT DISTINCT FROM job.lease
        FROM job
        JOIN lane ON lane.id = job.lane
        WHERE job.state = 'running' AND job.worker = worker_
        ORDER BY job.handout;
END
$$;
