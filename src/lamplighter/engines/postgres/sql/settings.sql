-- put_queue, put_tenant, put_type: what operators set. The first mark of a hold stays.

-- settings_changed: what beats tell the workers.
CREATE OR REPLACE FUNCTION settings_changed() RETURNS void
LANGUAGE sql SET search_path FROM CURRENT AS $$
    UPDATE meta SET value = meta.value + 1 WHERE meta.name = 'settings'
$$;

-- put_queue: once it is held, no claim that began before hands out anything of it. Lock: the queue.
CREATE OR REPLACE FUNCTION put_queue(
    name_ text, max_wait_ bigint, held_ boolean, mark_ text
) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint;
BEGIN
    IF held_ IS NOT NULL THEN
        PERFORM lock_queues(ARRAY[name_]);
    END IF;
    now_ := now_ms();
    INSERT INTO queue (name, max_wait, hold)
    VALUES (name_, coalesce(max_wait_, 60000), CASE WHEN held_ THEN mark_at(mark_, now_) END)
    ON CONFLICT (name) DO UPDATE
    SET max_wait = coalesce(max_wait_, queue.max_wait),
        removed = false,
        hold = CASE WHEN held_ THEN coalesce(queue.hold, excluded.hold)
                    WHEN held_ IS NULL THEN queue.hold END;
    PERFORM settings_changed();
END
$$;

-- put_tenant: a hold puts the tenant's turns to sleep without a time; unholding wakes them at the
-- clock. Lock: every queue, and no new one meanwhile, since claims of a queue write its turns.
-- One look per lane, free of the backlog. Index: turn_newest.
CREATE OR REPLACE FUNCTION put_tenant(
    name_ text, weight_ integer, held_ boolean, mark_ text
) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    now_ bigint;
    queues_ text[];
    lanes_ integer[];
    dues_ bigint[];
BEGIN
    IF held_ IS NOT NULL THEN
        -- The queues first: whoever holds one of them may be waiting for who makes a lane.
        queues_ := ARRAY(SELECT DISTINCT lane.queue FROM lane);
        PERFORM lock_queues(queues_);
        LOCK TABLE lane IN SHARE MODE;
        IF EXISTS (SELECT FROM lane WHERE lane.queue <> ALL (queues_)) THEN
            RAISE EXCEPTION 'a queue was made meanwhile' USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    now_ := now_ms();
    INSERT INTO tenant (name, weight, hold)
    VALUES (name_, coalesce(weight_, 1), CASE WHEN held_ THEN mark_at(mark_, now_) END)
    ON CONFLICT (name) DO UPDATE
    SET weight = coalesce(weight_, tenant.weight),
        hold = CASE WHEN held_ THEN coalesce(tenant.hold, excluded.hold)
                    WHEN held_ IS NULL THEN tenant.hold END;
    IF held_ THEN
        WITH stopped AS (
            UPDATE turn
            SET version = nextval('turn_version'), awake = @tenant_held@
            WHERE turn.tenant = name_ AND turn.awake IN (@asleep@, @in_line@)
            RETURNING turn.lane
        )
        SELECT array_agg(stopped.lane) INTO lanes_ FROM stopped;
        PERFORM move_edges(lanes_, NULL);
    ELSIF NOT held_ THEN
        WITH woken AS (
            UPDATE turn
            SET version = nextval('turn_version'),
                awake = CASE WHEN turn.due <= now_ THEN @in_line@ ELSE @asleep@ END,
                time = (
                    SELECT greatest(tenant.time, pulse.clock)
                    FROM lane
                    LEFT JOIN LATERAL (
                        @pulse_of(lane.band)@
                    ) AS pulse ON true
                    @tenant_of(lane.band, name_)@ AS tenant
                    WHERE lane.id = turn.lane)
            WHERE turn.tenant = name_ AND turn.awake = @tenant_held@
            RETURNING turn.lane, turn.due
        )
        SELECT array_agg(woken.lane), array_agg(woken.due) INTO lanes_, dues_ FROM woken;
        PERFORM move_edges(lanes_, dues_);
    END IF;
    PERFORM settings_changed();
END
$$;

CREATE OR REPLACE FUNCTION put_type(name_ text, held_ boolean, mark_ text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_ bigint := now_ms();
BEGIN
    IF held_ IS NOT NULL THEN
        INSERT INTO type_setting (name, hold)
        VALUES (name_, CASE WHEN held_ THEN mark_at(mark_, now_) END)
        ON CONFLICT (name) DO UPDATE
        SET hold = CASE WHEN held_ THEN coalesce(type_setting.hold, excluded.hold) END;
    END IF;
    PERFORM settings_changed();
END
$$;
