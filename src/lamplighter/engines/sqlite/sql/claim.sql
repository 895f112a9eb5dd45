-- claim: hand out due jobs in the order of model/stride.py. Runs behind the one write lock, so what
-- is read here cannot change before it is written.

-- name: repeated
-- in: nonce
SELECT 1 FROM request WHERE nonce = :nonce;

-- name: still_running
-- The jobs of a repeated request; none is known to have started. Index: job_running (whole, it is
-- small).
-- in: nonce
SELECT @job.columns@, @claim.columns@, 0, lane
FROM job
WHERE state = 'running' AND nonce = :nonce
ORDER BY handout;

-- name: note_request
-- in: nonce, now
INSERT INTO request (nonce, at) VALUES (:nonce, :now) ON CONFLICT DO NOTHING;

-- name: queue
-- in: queue
SELECT handouts, max_wait FROM queue WHERE name = :queue;

-- name: clock
-- in: band
SELECT clock FROM band WHERE id = :band;

-- name: rested
-- Lanes of a band with sleepers whose time has come. Index: turn_asleep, one look a lane.
-- in: lanes, now
SELECT lane.value
FROM json_each(:lanes) AS lane
WHERE EXISTS (
    SELECT 1 FROM turn INDEXED BY turn_asleep
    WHERE turn.lane = lane.value AND turn.awake = 0 AND turn.due <= :now
);

-- name: asleep
-- Sleepers of a lane whose time has come, earliest first. Index: turn_asleep.
-- in: lane, now, limit
SELECT due, seq, lane, tenant
FROM turn INDEXED BY turn_asleep
WHERE lane = :lane AND awake = 0 AND due <= :now
ORDER BY due, seq
LIMIT :limit;

-- name: wake
-- in: lane, tenant, band
UPDATE turn
SET awake = 1,
    time = max(
        coalesce((SELECT time FROM share WHERE band = :band AND tenant = turn.tenant), 0),
        (SELECT clock FROM band WHERE id = :band)
    )
WHERE lane = :lane AND tenant = :tenant;

-- part: head
-- The first job of a turn, then the turn.
@job.columns(job)@, job.seq, job.lease,
turn.tenant, turn.time, turn.due, turn.seq, coalesce(share.time, 0), coalesce(tenant.weight, 1)

-- name: in_line
-- A page of a lane's awake turns in line, after a place, each with its first job.
-- Index: turn_in_line, then the job's row.
-- in: lane, band, time, tenant, limit
SELECT @head@
FROM turn INDEXED BY turn_in_line
CROSS JOIN job ON job.seq = turn.seq
LEFT JOIN share ON share.band = :band AND share.tenant = turn.tenant
LEFT JOIN tenant ON tenant.name = turn.tenant
WHERE turn.lane = :lane
  AND turn.awake = 1
  AND (turn.time, turn.tenant) > (:time, :tenant)
ORDER BY turn.time, turn.tenant
LIMIT :limit;

-- name: longest
-- The awake turns of a lane by how long their head has been due. Index: turn_longest, then the row.
-- in: lane, band, before, limit
SELECT @head@
FROM turn INDEXED BY turn_longest
CROSS JOIN job ON job.seq = turn.seq
LEFT JOIN share ON share.band = :band AND share.tenant = turn.tenant
LEFT JOIN tenant ON tenant.name = turn.tenant
WHERE turn.lane = :lane AND turn.awake = 1 AND turn.due < :before
ORDER BY turn.due, turn.seq
LIMIT :limit;

-- name: waiting
-- The next jobs of a turn, after a place. Index: job_waiting.
-- in: lane, tenant, due, seq, limit
SELECT @job.columns@, seq, lease
FROM job INDEXED BY job_waiting
WHERE lane = :lane
  AND tenant = :tenant
  AND state = 'waiting'
  AND hold IS NULL
  AND (due, seq) > (:due, :seq)
ORDER BY due, seq
LIMIT :limit;

-- name: heads
-- The next job after a place, for many turns at once, given as [lane, tenant, due, seq].
-- Index: job_waiting, one look a turn.
-- in: turns
SELECT given.key, job.due, job.seq
FROM json_each(:turns) AS given
CROSS JOIN job ON job.seq = (
    SELECT following.seq
    FROM job AS following INDEXED BY job_waiting
    WHERE following.lane = json_extract(given.value, '$[0]')
      AND following.tenant = json_extract(given.value, '$[1]')
      AND following.state = 'waiting'
      AND following.hold IS NULL
      AND (following.due, following.seq)
          > (json_extract(given.value, '$[2]'), json_extract(given.value, '$[3]'))
    ORDER BY following.due, following.seq
    LIMIT 1
);

-- name: turn
-- in: awake, time, due, seq, lane, tenant
UPDATE turn
SET awake = :awake, time = :time, due = :due, seq = :seq
WHERE lane = :lane AND tenant = :tenant;

-- name: turn_done
-- in: lane, tenant
DELETE FROM turn WHERE lane = :lane AND tenant = :tenant;

-- name: share
-- in: band, tenant, time
INSERT INTO share (band, tenant, time) VALUES (:band, :tenant, :time)
ON CONFLICT (band, tenant) DO UPDATE SET time = excluded.time;

-- name: set_clock
-- in: clock, band
UPDATE band SET clock = :clock WHERE id = :band;

-- name: set_handouts
-- in: handouts, queue
UPDATE queue SET handouts = :handouts WHERE name = :queue;

-- name: next_due
-- When does something asked for fall due? Indexes: turn_longest, turn_asleep, one look each a lane.
-- in: lanes
SELECT min(min(
    coalesce((SELECT turn.due FROM turn INDEXED BY turn_longest
              WHERE turn.lane = lane.value AND turn.awake = 1
              ORDER BY turn.due LIMIT 1), 9000000000000000),
    coalesce((SELECT turn.due FROM turn INDEXED BY turn_asleep
              WHERE turn.lane = lane.value AND turn.awake = 0
              ORDER BY turn.due LIMIT 1), 9000000000000000)
))
FROM json_each(:lanes) AS lane;
