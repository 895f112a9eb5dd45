"""Fills stores: many jobs in every state, as the verbs would have left them, only quicker."""

from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.model.job import Claim, Level
from lamplighter.port.conformance.builders import new_job, request
from tests.unit.postgres.plans.caller import Caller

QUEUE, OTHER = "first", "second"
TYPES = ("mail", "scan")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# A day that is past its retention, as prune would have made it.
OLD_DAY = """
DO $$
DECLARE
    start_ bigint := (now_ms() / 86400000 - 9) * 86400000;
BEGIN
    EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF done FOR VALUES FROM (%s) TO (%s)',
                   'done_' || to_char(to_timestamp(start_ / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD'),
                   start_, start_ + 86400000);
END
$$
"""
# Every other job is of one tenant, the others are of many; every fifth is due later.
JOBS = """
WITH fresh AS (
    INSERT INTO job (seq, id, lane, tenant, state, due, created, args, cost, size)
    SELECT nextval('job_seq'), gen_random_uuid(), (n / 7) % 4 + 1,
           CASE n % 2 WHEN 0 THEN 'flood' ELSE 't' || n / 2 % ({last} / 50) END, 'waiting',
           now_ms() + CASE n % 5 WHEN 0 THEN 3600000 + n ELSE 0 END, now_ms(), '{{}}', 1, 2
    FROM generate_series({first}, {last}) AS n
    RETURNING job.lane, job.tenant, job.due, job.seq
)
INSERT INTO arrival (lane, tenant, due, seq)
SELECT DISTINCT ON (lane, tenant) lane, tenant, due, seq FROM fresh ORDER BY lane, tenant, due, seq
"""
# Finished jobs: half of them past their retention. Some have a history, a log, a key.
DONE = """
WITH ended AS (
    INSERT INTO done (seq, id, lane, tenant, state, due, created, args, cost, size, generation,
                      lease, attempt, crashes, losses, suspect, nonce, worker, claimed, finished)
    SELECT nextval('job_seq'), gen_random_uuid(), n % 4 + 1, 't' || n % 100,
           CASE n % 10 WHEN 0 THEN 'cancelled' ELSE 'succeeded' END, 1, 1, '{{}}', 1, 2, 0,
           1, 0, 0, 0, false, 'nonce', 'worker', 1,
           CASE n % 2 WHEN 0 THEN now_ms() - 1000 * 60 * 20
                       ELSE (now_ms() / 86400000 - 9) * 86400000 + n END
    FROM generate_series({first}, {last}) AS n
    RETURNING id, seq
), history AS (
    INSERT INTO attempt (job_id, generation, lease, nonce, number, worker, outcome, started,
                         finished)
    SELECT id, 0, 0, 'nonce', 1, 'worker', 'failed', 1, 1 FROM ended WHERE seq % 4 = 0
), logs AS (
    INSERT INTO log (job_id, lease, number, data)
    SELECT id, 1, 0, 'line' FROM ended WHERE seq % 4 <= 1
)
INSERT INTO idempotency (tenant, scope, key, body, job_id, created)
SELECT 'flood', '', 'old-' || seq, 'body', gen_random_uuid(), seq FROM ended WHERE seq % 4 = 0
"""
DEAD = """
INSERT INTO dead (seq, id, lane, tenant, state, due, created, args, cost, size, generation, lease,
                  attempt, crashes, losses, suspect, nonce, worker, claimed, finished, reason,
                  fingerprint)
SELECT nextval('job_seq'), gen_random_uuid(), n % 4 + 1, 't' || n % 100, 'dead', 1, 1, '{{}}', 1,
       2, 0, 1, 5, 0, 0, false, 'nonce', 'worker', 1, now_ms() - n, 'attempts', 'boom'
FROM generate_series({first}, {last}) AS n
WHERE n % 5 = 0
"""
REQUESTS = """
INSERT INTO request (nonce, at)
SELECT 'request-' || n, n FROM generate_series({first}, {last}) AS n
WHERE n % 5 = 0
"""


async def prepare(call: Caller) -> None:
    """Make the lanes, and a few jobs of one tenant that wait, of which none runs."""
    for queue, type_, level in (
        (QUEUE, "mail", Level.NORMAL),
        (QUEUE, "scan", Level.NORMAL),
        (QUEUE, "mail", Level.HIGH),
        (OTHER, "mail", Level.NORMAL),
    ):
        jobs = [new_job(type_, queue=queue, level=level, tenant="flood") for _ in range(300)]
        await submit(call, jobs)
    call.run(OLD_DAY)
    call.run("SELECT make_days()")


async def fill(call: Caller, first: int, last: int) -> None:
    """Add jobs of all kinds, so many of each; a hundredth of the waiting ones then runs."""
    for statement in (JOBS, DONE, DEAD, REQUESTS):
        call.run(statement.format(first=first, last=last))
    # The lock of a queue has to be held to fold what arrived, so claims do it.
    while call.number("SELECT count(*) FROM arrival"):
        await take(call, 10, QUEUE)
        await take(call, 10, OTHER)
    for _ in range((last - first) // 10_000 + 1):
        await take(call, 100, QUEUE)


async def take(
    call: Caller, limit: int, queue: str = QUEUE, lease_ms: int = HOUR_MS
) -> list[Claim]:
    """Claim jobs for an hour."""
    asked = request(queue, types=TYPES, limit=limit, lease_ms=lease_ms)
    return (await claim(call, asked)).claims
