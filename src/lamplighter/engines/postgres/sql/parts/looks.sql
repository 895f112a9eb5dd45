-- What claims and those who move jobs look up, each by an index that meets the living row first.

-- The states of a turn, and what is later than any time; see the first migration.
-- @define asleep = 0
-- @define in_line = 1
-- @define tenant_held = 2
-- @define empty = 3
-- @define never = 9223372036854775807

-- jobs_of: the first waiting jobs of a turn, none before its (due, seq) or after `until`; head_of: the
-- first of all. Index: job_waiting.
-- @define jobs_of(turn, until, most)
SELECT job.ctid AS place, job.due, job.seq, job.cost, job.size
FROM job
WHERE job.lane = @turn@.lane
  AND job.tenant = @turn@.tenant
  AND job.state = 'waiting'
  AND job.hold IS NULL
  AND (job.due, job.seq) >= (@turn@.due, @turn@.seq)
  AND job.due <= @until@
ORDER BY job.due, job.seq
LIMIT @most@
-- @end
-- @define head_of(turn)
@jobs_of(@turn@, 9223372036854775807, 1)@
-- @end

-- tenant_of: how far a tenant has come in a band and where that stands, its weight, and whether it is
-- held. What is not asked for costs nothing. Index: share_newest, the key of tenant.
-- @define tenant_of(band, tenant)
CROSS JOIN LATERAL (
    SELECT (SELECT share.ctid FROM share
            WHERE share.band = @band@ AND share.tenant = @tenant@
            ORDER BY share.time DESC LIMIT 1) AS share,
           coalesce((SELECT share.time FROM share
                     WHERE share.band = @band@ AND share.tenant = @tenant@
                     ORDER BY share.time DESC LIMIT 1), 0) AS time,
           coalesce((SELECT tenant.weight FROM tenant WHERE tenant.name = @tenant@), 1) AS weight,
           (SELECT tenant.hold FROM tenant WHERE tenant.name = @tenant@) IS NOT NULL AS held
)
-- @end

-- step: how far a job of this cost takes a tenant of this weight.
-- @define step(cost, weight)
1000000::bigint * @cost@ / @weight@
-- @end

-- turn_of: the turn of a tenant in a lane. Index: turn_newest.
-- @define turn_of(lane, tenant)
SELECT turn.ctid AS place, turn.lane, turn.awake, turn.due, turn.seq
FROM turn
WHERE turn.tenant = @tenant@ AND turn.lane = @lane@
ORDER BY turn.version DESC
LIMIT 1
-- @end

-- pulse_of: the pulse of a band. Index: pulse_newest.
-- @define pulse_of(band)
SELECT pulse.ctid AS place, pulse.clock, pulse.seen
FROM pulse
WHERE pulse.band = @band@
ORDER BY pulse.version DESC
LIMIT 1
-- @end

-- edge_of: the edge of a lane. Index: edge_newest.
-- @define edge_of(lane)
SELECT edge.ctid AS place, edge.time, edge.due, edge.asleep
FROM edge
WHERE edge.lane = @lane@
ORDER BY edge.version DESC
LIMIT 1
-- @end

-- line_of: of each of these lanes the first turns in line, if it is asked for. Index: turn_in_line.
-- @define line_of(lanes, most)
SELECT t.place, t.lane, t.tenant, t.time, t.due, t.seq
FROM unnest(@lanes@) AS l
CROSS JOIN LATERAL (
    SELECT turn.ctid AS place, turn.lane, turn.tenant, turn.time, turn.due, turn.seq
    FROM turn
    WHERE turn.lane = l.lane AND turn.awake = @in_line@ AND turn.time >= 0 AND turn.time >= l.time
    ORDER BY turn.time, turn.tenant
    LIMIT @most@
) AS t
WHERE l.asked AND l.due < @never@
-- @end

-- first_due, first_asleep: when the first of a lane's turns falls due that are in line, or asleep; none
-- is before `since`. Index: turn_longest, turn_asleep.
-- @define first_due(lane, since)
coalesce((SELECT turn.due FROM turn
          WHERE turn.lane = @lane@ AND turn.awake = @in_line@
            AND turn.due >= 0 AND turn.due >= @since@
          ORDER BY turn.due, turn.seq LIMIT 1), @never@)
-- @end
-- @define first_asleep(lane, since)
coalesce((SELECT turn.due FROM turn
          WHERE turn.lane = @lane@ AND turn.awake = @asleep@ AND turn.due >= @since@
          ORDER BY turn.due, turn.seq LIMIT 1), @never@)
-- @end
