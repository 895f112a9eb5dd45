"""Short ways to say what a test needs: jobs, requests, outcomes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.ids import RANDOM_BITS, SHARD_BITS, compose, shard_of, shard_of_key
from lamplighter.model.job import (
    ALONE,
    NO_EXTRAS,
    Claim,
    Delivery,
    ErrorInfo,
    Extras,
    IdempotencyKey,
    JobRecord,
    Level,
    NewJob,
)
from lamplighter.model.journal import Journal, Piece
from lamplighter.model.lifecycle import Settlement, settle
from lamplighter.model.outcome import Abandoned, Failed, Released, Snoozed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.values import (
    ChangeAnswer,
    ClaimRequest,
    Recording,
    SettleAnswer,
    Settled,
    SubmitAnswer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lamplighter.port.store import Engine
    from lamplighter.port.values import Changed, Claimed

LEASE_MS = 30_000
NO_JITTER = Retry(jitter=0, base=10, factor=1)
BOOM = ErrorInfo(type="ValueError", message="boom", fingerprint="boom", kinds=("ValueError",))


home = 0
"""Shard of jobs without a key, so that a test sees one scheduler; each test has another one."""


def new_id(shard: int | None = None) -> str:
    """Make the id of a new job."""
    bits = home if shard is None else shard % (1 << SHARD_BITS)
    return compose(runtime.now_ms(), bits, runtime.random_bits(RANDOM_BITS))


def new_job(
    type: str = "work",
    *,
    id: str | None = None,
    args: bytes = b"{}",
    queue: str = "default",
    level: Level = Level.NORMAL,
    tenant: str = "default",
    delay_ms: int = 0,
    run_at_ms: int | None = None,
    delivery: Delivery = Delivery.AT_LEAST_ONCE,
    extras: Extras = NO_EXTRAS,
    key: IdempotencyKey | None = None,
    held: bool = False,
    cost: int = 1,
    requirement: str = "",
    schedule: str | None = None,
) -> NewJob:
    """Make a job with a fresh id, in the shard of its key if it has one."""
    if id is None:
        id = new_id(None if key is None else shard_of_key(tenant, key.scope, key.key))
    return NewJob(
        id=id,
        type=type,
        args=args,
        queue=queue,
        level=level,
        tenant=tenant,
        delay_ms=delay_ms,
        run_at_ms=run_at_ms,
        delivery=delivery,
        extras=extras,
        key=key,
        held=held,
        cost=cost,
        requirement=requirement,
        schedule=schedule,
    )


def jobs_of(tenant: str, count: int, *, type: str = "work", delay_ms: int = 0) -> list[NewJob]:
    """Make many jobs of one tenant."""
    return [new_job(type, tenant=tenant, delay_ms=delay_ms) for _ in range(count)]


def spread(jobs: Iterable[NewJob]) -> list[NewJob]:
    """Return the same jobs with ids in one shard after the other, but for those with a key."""
    return [
        job if job.key is not None else replace(job, id=new_id(home + number))
        for number, job in enumerate(jobs)
    ]


def part_of(engine: Engine, job_id: str) -> int:
    """Tell in which part of the store a job is."""
    return shard_of(job_id) % engine.capabilities.shards


def is_poll(engine: Engine, asked: ClaimRequest, answer: Claimed, expected: int | None) -> bool:
    """Whether a claim says what is expected; a full one of a divided store may say: at once."""
    size = sum(len(one.job.args) for one in answer.claims)
    full = len(answer.claims) >= asked.limit or size >= asked.max_bytes
    if full and answer.claims and engine.capabilities.shards > 1 and answer.poll_after_ms == 0:
        return True
    return answer.poll_after_ms == expected


def key(name: str = "key", *, body: str = "body", scope: str = "") -> IdempotencyKey:
    """Make an idempotency key."""
    return IdempotencyKey(key=name, body=body, scope=scope)


async def submit(engine: Engine, *jobs: NewJob) -> list[str]:
    """Submit jobs that must all be new, in as many calls as the engine wants; give their ids."""
    batch = min(1_000, engine.capabilities.max_batch)
    for start in range(0, len(jobs), batch):
        answers = await engine.jobs.submit(jobs[start : start + batch])
        assert all(one.answer is SubmitAnswer.CREATED for one in answers)
    return [job.id for job in jobs]


def request(
    *queues: str,
    types: tuple[str, ...] = ("work",),
    limit: int = 1,
    lease_ms: int = LEASE_MS,
    nonce: str | None = None,
    worker: str = "worker-1",
    requirements: tuple[str, ...] = ("",),
    max_bytes: int = 1 << 20,
) -> ClaimRequest:
    """Make a request for queues in strict order; without queues, for the default one."""
    return ClaimRequest(
        nonce=runtime.nonce() if nonce is None else nonce,
        worker=worker,
        queues=tuple((queue, limit) for queue in queues or ("default",)),
        types=types,
        limit=limit,
        lease_ms=lease_ms,
        requirements=requirements,
        max_bytes=max_bytes,
    )


def with_quotas(asked: ClaimRequest, *quotas: tuple[str, int]) -> ClaimRequest:
    """Return a request with its queues and their quotas."""
    return replace(asked, queues=quotas)


async def claim(
    engine: Engine,
    limit: int = 1,
    *queues: str,
    types: tuple[str, ...] = ("work",),
    worker: str = "worker-1",
    lease_ms: int = LEASE_MS,
    requirements: tuple[str, ...] = ("", ALONE),
) -> list[Claim]:
    """Claim up to ``limit`` jobs, suspects too."""
    asked = request(
        *queues,
        types=types,
        limit=limit,
        worker=worker,
        lease_ms=lease_ms,
        requirements=requirements,
    )
    return (await engine.jobs.claim(asked)).claims


async def claim_one(
    engine: Engine, *queues: str, types: tuple[str, ...] = ("work",), lease_ms: int = LEASE_MS
) -> Claim:
    """Claim the one job that must be there."""
    claims = await claim(engine, 1, *queues, types=types, lease_ms=lease_ms)
    assert len(claims) == 1, "nothing was handed out"
    return claims[0]


async def running(engine: Engine, job: NewJob | None = None) -> Claim:
    """Submit a job and claim it."""
    wanted = job or new_job()
    await submit(engine, wanted)
    taken = await claim_one(engine, wanted.queue, types=(wanted.type,))
    assert taken.job.id == wanted.id, "another job was handed out"
    return taken


async def finished(engine: Engine, job: NewJob | None = None) -> Claim:
    """Submit a job and let it succeed."""
    taken = await running(engine, job)
    await settle_one(engine, completed(taken))
    return taken


async def died(engine: Engine, job: NewJob | None = None) -> Claim:
    """Submit a job and let it die at its first failure."""
    taken = await running(engine, job)
    await settle_one(engine, failed(taken, retry=Retry(max_attempts=1)))
    return taken


async def handed_out(engine: Engine, limit: int, *queues: str) -> list[str]:
    """Claim and give the ids in the order of the hand-outs."""
    return [taken.job.id for taken in await claim(engine, limit, *queues)]


def completed(taken: Claim, result: bytes | None = None) -> Settlement:
    """The handler returned."""
    return settle(taken, Succeeded(result))


def failed(
    taken: Claim, error: ErrorInfo = BOOM, *, retry: Retry = NO_JITTER, chance: float = 0.0
) -> Settlement:
    """The handler raised; by default it is tried again after ten seconds."""
    return settle(taken, Failed(error), retry=retry, chance=chance)


def snoozed(taken: Claim, seconds: float) -> Settlement:
    """The handler asked for later."""
    return settle(taken, Snoozed(seconds))


def released(taken: Claim) -> Settlement:
    """The worker gives it back."""
    return settle(taken, Released())


def abandoned(taken: Claim) -> Settlement:
    """What rescue writes about a claim whose lease ended."""
    return settle(taken, Abandoned(), only_if_expired=True)


async def settle_one(engine: Engine, settlement: Settlement) -> Settled:
    """Settle one claim, again while somebody else has the job locked."""
    while True:
        (answer,) = await engine.jobs.settle([settlement])
        if answer.answer is not SettleAnswer.BUSY:
            return answer


async def record(engine: Engine, job_id: str) -> JobRecord:
    """Read a job that must be there."""
    found = await engine.inspector.job(job_id)
    assert found is not None, f"{job_id} is not in the store"
    return found


async def records(engine: Engine, ids: Iterable[str]) -> list[JobRecord]:
    """Read jobs that must be there."""
    return [await record(engine, job_id) for job_id in ids]


def pieces(*texts: str) -> tuple[Piece, ...]:
    """Make pieces of a log, numbered from 0."""
    return tuple(Piece(number, text.encode()) for number, text in enumerate(texts))


def recording(taken: Claim, *texts: str) -> Recording:
    """Make a recording of pieces."""
    return Recording(taken.job.id, taken.fence, Journal(pieces=pieces(*texts)))


async def mark_start(engine: Engine, taken: Claim) -> bool:
    """Set the start mark of a claim; False: its fence does not hold any more."""
    (answer,) = await engine.jobs.record([Recording(taken.job.id, taken.fence, started=True)])
    return answer.held


async def logged(engine: Engine, job_id: str) -> list[str]:
    """Read all pieces of a job's log."""
    return [one.piece.data.decode() for one in await engine.inspector.logs(job_id)]


async def rescue_and_claim_again(engine: Engine, first: Claim) -> Claim:
    """Rescue a claim whose lease has ended and hand its job out anew, due at once."""
    (expired,) = await engine.jobs.rescue(10)
    assert expired.claim.fence == first.fence
    await settle_one(engine, abandoned(first))
    await engine.jobs.retry([first.job.id], by="test", reason="not later")
    return await claim_one(engine, first.job.queue, types=(first.job.type,))


def answers(changes: Sequence[Changed]) -> list[ChangeAnswer]:
    """Return the bare answers of an operator's verb."""
    return [change.answer for change in changes]
