-- Reads for people and programs that look. Nothing here changes anything.

-- part: stored
@job.columns(job)@, @claim.columns(job)@, @record.columns(job)@, progress.value

-- part: called
-- Whether the handler of a running job was called, as far as is known.
CASE
    WHEN state <> 'running' THEN 1
    WHEN delivery IS NOT NULL THEN started = job.lease
    ELSE NOT EXISTS (
        SELECT 1 FROM worker AS holder
        WHERE holder.id = substr(job.worker, 1, instr(job.worker || '/', '/') - 1)
          AND instr(holder.unstarted, job.id) > 0
    )
END

-- part: these_lanes
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))

-- part: these_tenants
(:tenants IS NULL OR tenant IN (SELECT value FROM json_each(:tenants)))

-- part: these_schedules
(:schedules IS NULL OR schedule IN (SELECT value FROM json_each(:schedules)))

-- part: this_tag
-- What cannot be read has no tag.
(:tag IS NULL OR (json_valid(extras)
                  AND :tag IN (SELECT value FROM json_each(extras, '$.tags'))))

-- part: in_time
(:since IS NULL OR created >= :since) AND (:to IS NULL OR created < :to)

-- name: job
-- in: id
SELECT @stored@, @called@, seq, lane
FROM job
LEFT JOIN progress ON progress.job_id = job.id AND progress.lease = job.lease
WHERE id = :id;

-- name: beyond_jobs
-- The first job, newest first, behind a stretch of so many.
-- in: before, stretch
SELECT seq FROM job WHERE seq < :before ORDER BY seq DESC LIMIT 1 OFFSET :stretch;

-- name: jobs
-- Jobs of a stretch, newest first, without most of those that a filter does not mean: states,
-- lanes and tenants are JSON lists, or NULL for all. The rest of the filter looks at the records.
-- in: before, beyond, states, lanes, tenants, schedules, tag, since, to, after, until, held, tried, failed, limit
SELECT @stored@, @called@, seq, lane
FROM job
LEFT JOIN progress ON progress.job_id = job.id AND progress.lease = job.lease
WHERE seq < :before
  AND seq > :beyond
  AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
  AND @these_lanes@
  AND @these_tenants@
  AND @these_schedules@
  AND @this_tag@
  AND @in_time@
  AND (:after IS NULL OR finished >= :after)
  AND (:until IS NULL OR finished < :until)
  AND (:held = 0 OR hold IS NOT NULL)
  AND (:tried = 0 OR attempt > 0)
  AND (:failed = 0 OR error IS NOT NULL)
ORDER BY seq DESC
LIMIT :limit;

-- name: beyond_dead
-- The first dead letter behind a stretch of so many. Index: job_dead.
-- in: finished, seq, stretch
SELECT finished, seq FROM job INDEXED BY job_dead
WHERE state = 'dead' AND (finished, seq) < (:finished, :seq)
ORDER BY finished DESC, seq DESC
LIMIT 1 OFFSET :stretch;

-- name: dead
-- Dead letters, newest first, without most of those that a filter does not mean. Index: job_dead.
-- in: finished, seq, beyond_finished, beyond_seq, lanes, tenants, limit
SELECT @stored@, 1, finished, seq, lane
FROM job INDEXED BY job_dead
LEFT JOIN progress ON progress.job_id = job.id AND progress.lease = job.lease
WHERE state = 'dead'
  AND (finished, seq) < (:finished, :seq)
  AND (finished, seq) > (:beyond_finished, :beyond_seq)
  AND @these_lanes@
  AND @these_tenants@
ORDER BY finished DESC, seq DESC
LIMIT :limit;

-- name: dead_groups
-- The newest dead letters by lane and fingerprint; the columns behind the greatest of their times
-- are those of the job that has it. What cannot be read has no fingerprint.
-- Index: job_dead.
-- in: stretch, lanes, tenants, schedules, prints, tag, since, to, after, until
SELECT lane, print, count(*), max(printf('%020d %020d', finished, seq)), finished, id, reason, error
FROM (
    SELECT lane, tenant, schedule, created, finished, seq, id, reason, error, extras,
           coalesce(CASE WHEN json_valid(error) THEN json_extract(error, '$.fingerprint') END, '')
               AS print
    FROM job INDEXED BY job_dead
    WHERE state = 'dead'
    ORDER BY finished DESC, seq DESC
    LIMIT :stretch
)
WHERE @these_lanes@
  AND @these_tenants@
  AND @these_schedules@
  AND (:prints IS NULL OR print IN (SELECT value FROM json_each(:prints)))
  AND @this_tag@
  AND @in_time@
  AND (:after IS NULL OR finished >= :after)
  AND (:until IS NULL OR finished < :until)
GROUP BY lane, print;

-- name: counts
-- Jobs per state, each exact up to a limit. Each part is served by its own partial index.
-- in: limit
SELECT 'blocked', count(*) FROM (SELECT 1 FROM job INDEXED BY job_blocked
    WHERE state = 'blocked' LIMIT :limit)
UNION ALL
SELECT 'waiting', count(*) FROM (SELECT 1 FROM job INDEXED BY job_waiting
    WHERE state = 'waiting' AND hold IS NULL LIMIT :limit)
UNION ALL
SELECT 'waiting', count(*) FROM (SELECT 1 FROM job INDEXED BY job_held
    WHERE state = 'waiting' AND hold IS NOT NULL LIMIT :limit)
UNION ALL
SELECT 'running', count(*) FROM (SELECT 1 FROM job INDEXED BY job_running
    WHERE state = 'running' LIMIT :limit)
UNION ALL
SELECT 'succeeded', count(*) FROM (SELECT 1 FROM job INDEXED BY job_succeeded
    WHERE state = 'succeeded' LIMIT :limit)
UNION ALL
SELECT 'dead', count(*) FROM (SELECT 1 FROM job INDEXED BY job_dead
    WHERE state = 'dead' LIMIT :limit)
UNION ALL
SELECT 'cancelled', count(*) FROM (SELECT 1 FROM job INDEXED BY job_cancelled
    WHERE state = 'cancelled' LIMIT :limit)
UNION ALL
SELECT 'expired', count(*) FROM (SELECT 1 FROM job INDEXED BY job_expired
    WHERE state = 'expired' LIMIT :limit);

-- name: queues
SELECT name, handouts, max_wait, hold, removed FROM queue ORDER BY name;

-- name: one_queue
-- in: name
SELECT name, handouts, max_wait, hold, removed FROM queue WHERE name = :name;

-- name: running_in_lanes
-- in: lanes
SELECT count(*) FROM job INDEXED BY job_running
WHERE state = 'running' AND lane IN (SELECT value FROM json_each(:lanes));

-- name: running_lanes
SELECT lane, count(*) FROM job INDEXED BY job_running WHERE state = 'running' GROUP BY lane;

-- name: running_tenants
SELECT tenant, count(*) FROM job INDEXED BY job_running WHERE state = 'running' GROUP BY tenant;

-- name: ready_in_lane
-- Due jobs of a lane, turn by turn: those of one must not hide those of another. Index: job_waiting.
-- in: lane, now, limit
SELECT count(*) FROM (
    SELECT 1
    FROM turn
    CROSS JOIN job INDEXED BY job_waiting
        ON job.lane = turn.lane AND job.tenant = turn.tenant AND job.due <= :now
    WHERE turn.lane = :lane AND turn.due <= :now AND job.state = 'waiting' AND job.hold IS NULL
    LIMIT :limit
);

-- name: scheduled_in_lane
-- in: lane, now, limit
SELECT count(*) FROM (
    SELECT 1
    FROM turn
    CROSS JOIN job INDEXED BY job_waiting
        ON job.lane = turn.lane AND job.tenant = turn.tenant AND job.due > :now
    WHERE turn.lane = :lane AND job.state = 'waiting' AND job.hold IS NULL
    LIMIT :limit
);

-- name: oldest_in_line
-- The head of a lane that has been due for longest, of turns that are awake. Index: turn_longest.
-- in: lane, now
SELECT due, seq FROM turn INDEXED BY turn_longest
WHERE lane = :lane AND awake = 1 AND due <= :now
ORDER BY due, seq
LIMIT 1;

-- name: oldest_asleep
-- The same of turns that nobody has woken yet. Index: turn_asleep.
-- in: lane, now
SELECT due, seq FROM turn INDEXED BY turn_asleep
WHERE lane = :lane AND awake = 0 AND due <= :now
ORDER BY due, seq
LIMIT 1;

-- name: tenants
-- in: limit
SELECT name, max(weight), max(hold)
FROM (
    SELECT name, weight, hold FROM tenant
    UNION ALL
    SELECT DISTINCT tenant, 1, NULL FROM turn
    UNION ALL
    SELECT DISTINCT tenant, 1, NULL FROM job INDEXED BY job_running WHERE state = 'running'
)
GROUP BY name
ORDER BY name
LIMIT :limit;

-- name: waiting_tenants
-- Jobs of each tenant that wait, counted turn by turn in the order of the index: job_waiting.
SELECT tenant, sum(number)
FROM (
    SELECT tenant, count(*) AS number FROM job INDEXED BY job_waiting
    WHERE state = 'waiting' AND hold IS NULL
    GROUP BY lane, tenant
)
GROUP BY tenant;

-- name: one_tenant
-- Settings of a tenant, if any, and its jobs; those that wait are counted turn by turn, up to a
-- limit. Index: job_waiting.
-- in: name, limit
SELECT (SELECT weight FROM tenant WHERE name = :name),
       (SELECT hold FROM tenant WHERE name = :name),
       (SELECT count(*) FROM (
           SELECT 1
           FROM lane
           CROSS JOIN job INDEXED BY job_waiting ON job.lane = lane.id AND job.tenant = :name
           WHERE job.state = 'waiting' AND job.hold IS NULL
           LIMIT :limit
       )),
       (SELECT count(*) FROM job INDEXED BY job_running
        WHERE state = 'running' AND tenant = :name);

-- name: held_of
-- Waiting jobs of a tenant that are held. Index: job_held.
-- in: tenant, most
SELECT count(*) FROM (
    SELECT 1 FROM job INDEXED BY job_held
    WHERE state = 'waiting' AND hold IS NOT NULL AND tenant = :tenant
    LIMIT :most);

-- name: tenant
-- in: name
SELECT weight, hold FROM tenant WHERE name = :name;

-- name: queue
-- in: name
SELECT hold FROM queue WHERE name = :name;

-- name: type
-- in: name
SELECT hold FROM type_setting WHERE name = :name;

-- name: behind
-- How many jobs of its own turn go before this one? Index: job_waiting.
-- in: lane, tenant, due, seq, limit
SELECT count(*) FROM (
    SELECT 1 FROM job INDEXED BY job_waiting
    WHERE lane = :lane
      AND tenant = :tenant
      AND state = 'waiting'
      AND hold IS NULL
      AND (due, seq) < (:due, :seq)
    LIMIT :limit
);

-- name: types
-- in: alive
SELECT type_version.name,
       type_version.queue,
       type_version.schema,
       type_version.hash,
       type_version.options,
       type_setting.hold,
       (SELECT count(*) FROM worker_type
        JOIN worker ON worker.id = worker_type.worker
        WHERE worker_type.name = type_version.name
          AND worker_type.hash = type_version.hash
          AND worker.beat > :alive),
       (SELECT json_group_array(json_array(seat.version_slot, json(seat.queues), seat.number))
        FROM (SELECT worker.version_slot, worker.queues, count(*) AS number
              FROM worker_type
              JOIN worker ON worker.id = worker_type.worker
              WHERE worker_type.name = type_version.name
                AND worker_type.hash = type_version.hash
                AND worker.beat > :alive
              GROUP BY worker.version_slot, worker.queues) AS seat)
FROM type_version
LEFT JOIN type_setting ON type_setting.name = type_version.name
ORDER BY type_version.name, type_version.seen DESC, type_version.hash;

-- name: workers
SELECT id, host, pid, queues, slots, running, joined, beat,
       (SELECT group_concat(name, char(10)) FROM worker_type WHERE worker = worker.id),
       version_slot
FROM worker
ORDER BY joined, id;

-- name: attempts
-- The rows of history, and the job's own if it runs, or succeeded, in an attempt without a row;
-- newest first.
-- in: job_id, until, limit
SELECT @attempt.columns@
FROM attempt
WHERE job_id = :job_id AND (:until IS NULL OR lease <= :until)
UNION ALL
SELECT id, generation, lease, attempt + 1, worker, state, claimed, finished, NULL, nonce
FROM job
WHERE id = :job_id AND state IN ('running', 'succeeded')
  AND (:until IS NULL OR lease <= :until)
ORDER BY generation DESC, lease DESC
LIMIT :limit;

-- name: logs
-- Pieces behind a place. Index: the key of log.
-- in: job_id, tenant, lease, number, limit
SELECT log.lease, log.number, log.data
FROM log
WHERE log.job_id = :job_id
  AND (log.lease, log.number) > (:lease, :number)
  AND (
      :tenant IS NULL
      OR EXISTS (SELECT 1 FROM job WHERE job.id = :job_id AND job.tenant = :tenant)
  )
ORDER BY log.lease, log.number
LIMIT :limit;
