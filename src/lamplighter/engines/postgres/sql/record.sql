-- record: keep what running attempts have to say. Guard: state, lease and nonce, under the lock of
-- the job, so that the attempt cannot end meanwhile. Index: the key of job, in the order of ids.
-- How locked jobs are waited for: see settle.
-- Functions without settings of their own are called only by those that have them.
--
-- in   progresses_, firsts_, ends_  one per recording: what it replaces, what it drops
--      places_, numbers_, …         one per piece: its recording, its number, where its bytes stand
--      marks_                       which of them set the start mark; NULL: none
--      skip_                        whether to leave out jobs that somebody else has locked
-- out  n, busy                      one row for each recording that was kept, or left out (busy)
CREATE OR REPLACE FUNCTION record(
    ids_ uuid[], leases_ integer[], nonces_ text[], progresses_ text[],
    firsts_ bigint[], ends_ bigint[],
    places_ integer[], numbers_ integer[], starts_ integer[], sizes_ integer[], data_ bytea,
    marks_ boolean[], skip_ boolean
) RETURNS TABLE (n bigint, busy boolean)
LANGUAGE plpgsql @planned@ SET lock_timeout = '50ms' AS $$
#variable_conflict use_column
DECLARE
    running_ CONSTANT text := 'running';  -- not a literal: no index but the key will do
    mine_ uuid[];
    held_ bigint[];
BEGIN
    -- What a server forgets is the end of a log that its worker is still writing. A start that it
    -- forgot would be made again.
    IF marks_ IS NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF skip_ THEN
        PERFORM set_config('lock_timeout', '0', true);
        mine_ := ARRAY(
            SELECT job.id FROM job WHERE job.id = ANY (ids_) ORDER BY job.id
            FOR NO KEY UPDATE SKIP LOCKED);
    ELSE
        PERFORM FROM job WHERE job.id = ANY (ids_) ORDER BY job.id FOR NO KEY UPDATE;
    END IF;
    SELECT coalesce(array_agg(given.n), '{}') INTO held_
    FROM unnest(ids_, leases_, nonces_) WITH ORDINALITY AS given(id, lease, nonce, n)
    JOIN job ON job.id = given.id
            AND job.state = running_
            AND job.lease = given.lease
            AND job.nonce = given.nonce;
    IF skip_ THEN
        RETURN QUERY SELECT h.n, true FROM unnest(held_) AS h(n) WHERE ids_[h.n] <> ALL (mine_);
        held_ := ARRAY(SELECT h.n FROM unnest(held_) AS h(n) WHERE ids_[h.n] = ANY (mine_));
    END IF;
    PERFORM write_journals(held_, ids_, leases_, progresses_, firsts_, ends_,
                           places_, numbers_, starts_, sizes_, data_);
    IF marks_ IS NOT NULL THEN
        UPDATE job
        SET started = job.lease
        WHERE job.id IN (SELECT ids_[h.n] FROM unnest(held_) AS h(n) WHERE marks_[h.n])
          AND job.started IS DISTINCT FROM job.lease;
    END IF;
    RETURN QUERY SELECT h.n, false FROM unnest(held_) AS h(n);
END
$$;

-- write_journals: write the given journals of these places. Also used by settle.
-- Those of one job are written one after the other: first come the first of each.
CREATE OR REPLACE FUNCTION write_journals(
    which_ bigint[], ids_ uuid[], leases_ integer[], progresses_ text[],
    firsts_ bigint[], ends_ bigint[],
    places_ integer[], numbers_ integer[], starts_ integer[], sizes_ integer[], data_ bytea
) RETURNS void
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
    turn_ bigint[];
    drop_ record;
BEGIN
    WHILE cardinality(which_) > 0 LOOP
        turn_ := ARRAY(
            SELECT DISTINCT ON (ids_[w.n]) w.n FROM unnest(which_) AS w(n) ORDER BY ids_[w.n], w.n);
        which_ := ARRAY(SELECT unnest(which_) EXCEPT SELECT unnest(turn_));
        IF progresses_ IS NOT NULL THEN
            INSERT INTO progress (job_id, lease, value)
            SELECT g.id, g.lease, g.value
            FROM unnest(ids_, leases_, progresses_) WITH ORDINALITY AS g(id, lease, value, n)
            WHERE g.value IS NOT NULL AND g.n IN (SELECT unnest(turn_))
            ON CONFLICT (job_id) DO UPDATE SET lease = excluded.lease, value = excluded.value;
        END IF;
        IF places_ IS NOT NULL THEN
            INSERT INTO log (job_id, lease, number, data)
            SELECT ids_[p.place], leases_[p.place], p.number, substr(data_, p.start, p.size)
            FROM unnest(places_, numbers_, starts_, sizes_) AS p(place, number, start, size)
            WHERE p.place IN (SELECT unnest(turn_))
            ON CONFLICT DO NOTHING;
        END IF;
        CONTINUE WHEN ends_ IS NULL;
        FOR drop_ IN
            SELECT g.id, g.lease, g.first_number, g.end_number
            FROM unnest(ids_, leases_, firsts_, ends_)
                 WITH ORDINALITY AS g(id, lease, first_number, end_number, n)
            WHERE g.end_number > g.first_number AND g.n IN (SELECT unnest(turn_))
        LOOP
            DELETE FROM log
            WHERE log.job_id = drop_.id
              AND log.lease = drop_.lease
              AND log.number >= drop_.first_number
              AND log.number < drop_.end_number;
        END LOOP;
    END LOOP;
END
$$;
