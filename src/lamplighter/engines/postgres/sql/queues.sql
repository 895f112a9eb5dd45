-- enter_queues, remove_queue: which queues there are, and who has brought them.

-- enter_queues: note that a tenant brings these, unless it would have brought too many. Lock: the
-- tenant's notes, so that two callers do not count at once. Index: brought_by.
CREATE OR REPLACE FUNCTION enter_queues(names_ text[], tenant_ text, most_ integer) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    new_ text[];
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '/brought/' || tenant_, 0));
    new_ := ARRAY(
        SELECT DISTINCT n COLLATE "C" FROM unnest(names_) AS n
        WHERE NOT EXISTS (SELECT FROM brought WHERE brought.queue = n)
        ORDER BY 1);
    IF cardinality(new_) > 0 AND cardinality(new_) + (
        SELECT count(*) FROM brought WHERE brought.tenant = tenant_) > most_
    THEN
        RETURN false;
    END IF;
    INSERT INTO brought (queue, tenant) SELECT n, tenant_ FROM unnest(new_) AS n
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- remove_queue: let an empty queue be listed no more. Lock: the queue, as claims take it.
-- Index: job_waiting, job_running, job_held.
-- out  done | already | conflict | unknown
CREATE OR REPLACE FUNCTION remove_queue(name_ text, dead_ bigint) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    lanes_ integer[];
    removed_ boolean;
    there_ boolean;
    forgotten_ boolean;
BEGIN
    PERFORM lock_queues(ARRAY[name_]);
    SELECT queue.removed INTO removed_ FROM queue WHERE queue.name = name_;
    there_ := FOUND;
    lanes_ := ARRAY(SELECT lane.id FROM lane WHERE lane.queue = name_);
    IF EXISTS (SELECT FROM job WHERE job.state = 'waiting' AND job.hold IS NULL
               AND job.lane = ANY (lanes_))
       OR EXISTS (SELECT FROM job WHERE job.state = 'running' AND job.lane = ANY (lanes_))
       OR EXISTS (SELECT FROM job WHERE job.state <> 'running'
                  AND (job.hold IS NOT NULL OR job.state = 'blocked') AND job.lane = ANY (lanes_))
       OR EXISTS (SELECT FROM worker WHERE worker.beat > now_ms() - dead_
                  AND worker.queues::jsonb @> to_jsonb(name_))
    THEN
        RETURN 'conflict';
    END IF;
    DELETE FROM brought WHERE brought.queue = name_;
    forgotten_ := FOUND;
    IF there_ AND NOT removed_ THEN
        UPDATE queue SET removed = true, hold = NULL, max_wait = 60000 WHERE queue.name = name_;
        PERFORM settings_changed();
        RETURN 'done';
    END IF;
    RETURN CASE WHEN forgotten_ THEN 'done' WHEN there_ THEN 'already' ELSE 'unknown' END;
END
$$;

-- count_held: waiting jobs of a tenant that are held, counted up to a limit. Index: job_held, all of it.
CREATE OR REPLACE FUNCTION count_held(tenant_ text, most_ integer) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT SET jit = off
SET enable_seqscan = off AS $$
    SELECT count(*) FROM (
        SELECT FROM job
        WHERE job.state = 'waiting' AND job.hold IS NOT NULL AND job.tenant = tenant_
        LIMIT most_
    ) AS one
$$;
