"""A store as it is after some busy days: jobs in every state, of many tenants, types and queues."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, cycle, islice

from benchmarks.errors import BenchmarkError
from lamplighter import App, runtime
from lamplighter.model.ids import compose
from lamplighter.model.job import Claim, ErrorInfo, Extras, Level, NewJob
from lamplighter.model.journal import Journal, Line, Piece, pack
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Outcome, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, NewWorker, Recording, TypeInfo

TENANTS, TYPES, QUEUES, CAUSES, WORKERS = 1_000, 50, 20, 40, 8
SCHEDULES = 10_000
BATCH, AT_ONCE, CLAIMED = 2_000, 4, 100

_LEVELS = {0: Level.HIGH, 1: Level.LOW}
"""Of every tenth type."""
_HOUR_MS = 3_600_000
_LEASE_MS = 24 * _HOUR_MS
_SCHEMA = json.dumps({"type": "object", "properties": {"order_id": {"type": "string"}}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of how many jobs are in which state; the rest waits, half of it for later."""

    jobs: int

    @property
    def ended(self) -> int:
        return self.jobs // 10

    @property
    def dead(self) -> int:
        return self.jobs // 200

    @property
    def retrying(self) -> int:
        return self.jobs // 100

    @property
    def running(self) -> int:
        return self.jobs // 500

    @property
    def few(self) -> int:
        """Jobs that are cancelled, and as many that are held."""
        return self.jobs // 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a page can be about."""

    dead: str
    """A job that failed, with logs."""
    waiting: str
    schedule: str


def type_name(number: int) -> str:
    return f"type-{number % TYPES:02}"


def queue_name(number: int) -> str:
    """Give the queue that jobs of a type go to."""
    return f"queue-{number % TYPES % QUEUES:02}"


def tenant_name(number: int) -> str:
    return f"tenant-{number % TENANTS:03}"


async def fill(app: App, jobs: int, tell: Callable[[str], None]) -> Filled:
    """Fill an empty store; the oldest jobs have ended, as they have in life."""
    engine, share, made = await app.engine(), Share(jobs=jobs), _made()
    await _join(engine)
    tell(f"{SCHEDULES:,} schedules")
    schedule = await _schedules(app)
    first = share.ended + share.dead + share.retrying + share.running
    tell(f"{first:,} jobs, to be run")
    await _submit(engine, made, first)
    tell("running them")
    dead = await _run(engine, share)
    tell(f"{jobs - first:,} jobs more")
    ids = await _submit(engine, made, jobs - first, later=True)
    few = engine.capabilities.max_batch
    for start in range(0, share.few, few):
        cancelled, held = (ids[at : at + few] for at in (start, share.few + start))
        await engine.jobs.cancel(cancelled, by="bench", reason="to be seen")
        await engine.jobs.hold(held, by="bench", reason="to be seen")
    return Filled(dead=dead, waiting=ids[-1], schedule=schedule)


async def _join(engine: Engine) -> None:
    types = tuple(
        TypeInfo(name=type_name(number), schema=_SCHEMA, hash="h", queue=queue_name(number))
        for number in range(TYPES)
    )
    queues = tuple(queue_name(number) for number in range(QUEUES))
    for number in range(WORKERS):
        await engine.membership.join(
            NewWorker(id=f"w-{number}", host="here", pid=1, queues=queues, slots=500, types=types)
        )


async def _schedules(app: App) -> str:
    @app.job(name=type_name(0), queue=queue_name(0))
    async def charge(order_id: str) -> None: ...

    await app.schedules.put_many(
        app.schedules.make(
            f"{tenant_name(number)}/daily-{number:05}",
            f"{number % 60} {number // 60 % 24} * * *",
            charge.options(tenant=tenant_name(number)).call("o-1"),
            timezone="Europe/Berlin",
            overlap="allow",
        )
        for number in range(SCHEDULES)
    )
    seen = f"{tenant_name(0)}/daily-00000"
    for _ in range(20):
        await app.schedules.trigger(seen, tenant=tenant_name(0))
    return seen


def _made() -> Iterator[tuple[int, NewJob]]:
    """Make jobs for ever; equal runs make equal jobs, but for their ids."""
    chance = random.Random(7)
    extras = [Extras(tags=(f"tag-{number}",)) for number in range(100)]
    for number in count():
        type_number = chance.randrange(TYPES)
        yield (
            number,
            NewJob(
                id=compose(runtime.now_ms(), 0, runtime.random_bits(70)),
                type=type_name(type_number),
                queue=queue_name(type_number),
                tenant=tenant_name(chance.randrange(TENANTS)),
                level=_LEVELS.get(type_number % 10, Level.NORMAL),
                args=b'{"order_id":"o-%d","payload":"%s"}' % (number, b"x" * 60),
                extras=extras[number % 100],
            ),
        )


async def _submit(
    engine: Engine, made: Iterator[tuple[int, NewJob]], number: int, *, later: bool = False
) -> list[str]:
    """Submit so many; of those for ``later`` every other one is due in an hour or more."""
    ids: list[str] = []
    size = min(BATCH, engine.capabilities.max_batch)
    while len(ids) < number:
        jobs = [
            replace(job, delay_ms=_HOUR_MS + index * 100) if later and index % 2 else job
            for index, job in islice(made, min(size * AT_ONCE, number - len(ids)))
        ]
        parts = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        await asyncio.gather(*map(engine.jobs.submit, parts))
        ids += [job.id for job in jobs]
    return ids


async def _run(engine: Engine, share: Share) -> str:
    """Let jobs end, fail, be tried again, and run on, in this order."""
    plan: Sequence[tuple[int, Callable[[int], Outcome] | None, Retry]] = (
        (share.ended, lambda _: Succeeded(b'{"paid":true}'), Retry()),
        (share.dead, _failed, Retry(max_attempts=1)),
        (share.retrying, _failed, Retry(delays=[36_000.0])),
        (share.running, None, Retry()),
    )
    seen, queues = "", cycle(map(queue_name, range(QUEUES)))
    for number, outcome, policy in plan:
        done = 0
        while done < number:
            claims = await _claim(engine, queues, min(CLAIMED, number - done))
            if outcome is None:
                done += len(claims)
                continue
            if policy.max_attempts == 1 and not seen:
                seen = claims[0].job.id
                await _log(engine, claims[0])
            settlements = [
                settle(claim, outcome(done + place), retry=policy)
                for place, claim in enumerate(claims)
            ]
            await engine.jobs.settle(settlements)
            done += len(claims)
    return seen


def _failed(number: int) -> Failed:
    cause = number % CAUSES
    return Failed(
        ErrorInfo(
            type=f"Error{cause}",
            message=f"failed because of {cause}",
            traceback="Traceback\n" * 20,
            fingerprint=f"f-{cause:02}",
        )
    )


async def _claim(engine: Engine, queues: Iterator[str], limit: int) -> list[Claim]:
    """Claim from one queue after the other: a claim of all of them would look at very much."""
    for queue in islice(queues, QUEUES):
        request = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-0",
            queues=((queue, limit),),
            types=tuple(map(type_name, range(TYPES))),
            limit=limit,
            lease_ms=_LEASE_MS,
        )
        if claims := (await engine.jobs.claim(request)).claims:
            return claims
    raise BenchmarkError("the store has no more jobs to run")


async def _log(engine: Engine, claim: Claim) -> None:
    lines = [Line(number, 5, "info", f"line {number}") for number in range(200)]
    pieces = tuple(Piece(number, pack([line])) for number, line in enumerate(lines))
    await engine.jobs.record([Recording(claim.job.id, claim.fence, Journal(pieces=pieces))])
