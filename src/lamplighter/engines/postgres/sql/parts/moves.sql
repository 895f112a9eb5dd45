-- What happens to a job: it enters its turn, leaves it, starts, stops and ends. Starting is the write of
-- claim, stopping that of settle; `recount` lets jobs leave.

-- enter: let turns know of those of these jobs that wait, with the next claim; of each turn the first.
-- Takes no lock. `submit_one` writes the same for its one job.
-- @define enter(jobs)
INSERT INTO arrival (lane, tenant, due, seq)
SELECT DISTINCT ON (e.lane, e.tenant) e.lane, e.tenant, e.due, e.seq
FROM @jobs@ AS e
WHERE e.state = 'waiting' AND e.hold IS NULL
ORDER BY e.lane, e.tenant, e.due, e.seq
-- @end

-- end: keep jobs that have ended, dead letters apart from all others. They have the columns `ended`.
-- @define end(jobs)
finished AS (
    INSERT INTO done (@ended@) SELECT @ended@ FROM @jobs@ WHERE state <> 'dead'
), buried AS (
    INSERT INTO dead (@ended@) SELECT @ended@ FROM @jobs@ WHERE state = 'dead'
)
-- @end
