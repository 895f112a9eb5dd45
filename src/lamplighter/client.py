"""Submitting, waiting and operating: the store's verbs as a program uses them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from lamplighter import config, payload, runtime
from lamplighter.backoff import Backoff
from lamplighter.connection import Connections
from lamplighter.model import ids
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import (
    InvalidSettings,
    KeyConflict,
    StoreBusy,
    StoreUnreachable,
    UnknownJob,
    WrongState,
)
from lamplighter.model.job import Delivery, IdempotencyKey, JobRecord, Level, NewJob
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import DEFAULT_QUEUE, PAYLOAD_LIMIT, shown
from lamplighter.observability import events
from lamplighter.options import Options
from lamplighter.port.store import CANCEL_TOPIC, FINISHED_TOPIC, Engine, JobStore, queue_topic
from lamplighter.port.values import ChangeAnswer, Changed, SubmitAnswer, Submitted, TypeRow
from lamplighter.portal import Portal
from lamplighter.registry import Registry

T = TypeVar("T")

_TRIES = 5
_BACKOFF = Backoff(0.075, 1.0, spread=1 / 3)
SPREAD = 100
"""Jobs without a key that go to the same shard together, of however many are submitted at once."""


class Client:
    """One program's way to the store; opens it when it is first needed."""

    def __init__(self, settings: config.Settings) -> None:
        self.settings = settings
        self.registry = Registry()
        self.connections = Connections()
        self.portal = Portal(self.connections.close)
        self.waiters = 0
        """Calls that wait for a job to finish; they share the reads between them."""
        self.shard = runtime.random_bits(ids.SHARD_BITS)
        """Shard of new jobs without a key; another one after each submission, and after `SPREAD`
        jobs: a flood must not have the share of one shard alone."""
        self._room = SPREAD
        """New jobs that still go to this shard."""

    def configure(self, settings: config.Settings) -> None:
        """Use other settings; possible until the store is opened."""
        if self.connections.used and settings.url != self.settings.url:
            raise InvalidSettings(
                f"the store {shown(redacted(self.settings.url))} is open already",
                hint="configure the app before it is used, or close it first",
                value=redacted(settings.url),
            )
        self.settings = settings

    async def engine(self) -> Engine:
        """Return the store, opened for the running event loop."""
        return await self.connections.engine(self.settings)

    async def repeatable(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call of the store, again if the store is busy or its reply was lost.

        Safe because every verb may be repeated: doing it twice is doing it once.
        """
        return (await self.repeated(call))[0]

    async def repeated(self, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The same, and tell whether it was called again: what it finds may be its own doing."""
        deadline = runtime.monotonic() + self.settings.store_deadline
        tries = 0
        while True:
            tries += 1
            try:
                return await call(), tries > 1
            except (StoreBusy, StoreUnreachable):
                pause = _BACKOFF.after(tries)
                if tries == _TRIES or runtime.monotonic() + pause > deadline:
                    raise
            await runtime.sleep(pause)

    # ── submit ───────────────────────────────────────────────────────────────────────────────

    def new_job(self, name: str, args: bytes, options: Options) -> NewJob:
        """Make a job, with an id of our own: submitting it twice is submitting it once."""
        if len(args) + options.extras_size > PAYLOAD_LIMIT:
            payload.check_size(len(args), options.extras_size)
        now = runtime.now_ms()
        self._room -= 1
        if self._room <= 0:  # threads may both have counted
            self.shard, self._room = runtime.random_bits(ids.SHARD_BITS), SPREAD
        key = None if options.key is None else _key(name, args, options)
        shard = self.shard if key is None else ids.shard_of_key(options.tenant, key.scope, key.key)
        return NewJob(
            id=ids.compose(now, shard, runtime.random_bits(ids.RANDOM_BITS)),
            type=name,
            args=args,
            queue=options.queue or DEFAULT_QUEUE,
            level=Level.NORMAL if options.level is None else options.level,
            tenant=options.tenant,
            delay_ms=milliseconds(options.delay / self.settings.speed) if options.delay else 0,
            run_at_ms=None if options.run_at_ms is None else self._sped_up(options.run_at_ms, now),
            delivery=options.delivery,
            extras=options.extras,
            key=key,
        )

    async def published(self, name: str, options: Options) -> Options:
        """Fill the options for a type without code here with the defaults its workers published."""
        engine = await self.engine()
        rows = await self.repeatable(engine.inspector.types)
        versions = [row for row in rows if row.name == name]
        if not versions:
            return options
        row = max(versions, key=lambda row: row.live_workers)
        return options.over(
            queue=row.queue,
            level=Level.of(row.options.get("priority", "normal")),
            delivery=Delivery(str(row.options.get("delivery", Delivery.AT_LEAST_ONCE))),
            secrets=_secrets(versions),
        )

    def _sped_up(self, run_at_ms: int, now: int) -> int:
        if self.settings.speed == 1.0 or run_at_ms <= now:
            return run_at_ms
        return now + int((run_at_ms - now) / self.settings.speed)

    async def is_divided(self) -> bool:
        """Tell whether the store has several shards, so that it matters where a job goes."""
        return (await self.engine()).capabilities.shards > 1

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store jobs, in as few writes as the engine's batches allow, and answer for each."""
        # Chosen anew before anything is waited for: what is submitted apart spreads over a store.
        self.shard = runtime.random_bits(ids.SHARD_BITS)
        engine = await self.engine()
        size = engine.capabilities.max_batch
        if len(jobs) <= size:
            return await self._submit_batch(engine, jobs)
        answers: list[Submitted] = []
        for start in range(0, len(jobs), size):
            answers += await self._submit_batch(engine, jobs[start : start + size])
        return answers

    async def _submit_batch(self, engine: Engine, jobs: Sequence[NewJob]) -> list[Submitted]:
        answers, again = await self.repeated(lambda: engine.jobs.submit(jobs))
        if again:
            # Our own first try was stored and only its reply was lost.
            answers = [
                Submitted(job.id, SubmitAnswer.CREATED) if answer.id == job.id else answer
                for job, answer in zip(jobs, answers, strict=True)
            ]
        await self._tell(engine, jobs, answers)
        return answers

    async def _tell(
        self, engine: Engine, jobs: Sequence[NewJob], answers: Sequence[Submitted]
    ) -> None:
        """Wake who waits for work that falls due before the next regular look."""
        soon = int(self.settings.poll * 1000)
        until = runtime.now_ms() + soon
        counted = Counter(
            [
                (job.queue, job.type)
                for job in jobs
                if (job.delay_ms <= soon if job.run_at_ms is None else job.run_at_ms <= until)
            ]
        )
        news: dict[str, dict[str, int]] = {}
        for (queue, kind), count in counted.items():
            news.setdefault(queue, {})[kind] = count
        for queue, types in news.items():
            await engine.wakeup.notify(queue_topic(queue), jobs=types)
        if events.listened():
            created = sum(answer.answer is SubmitAnswer.CREATED for answer in answers)
            names = sorted({job.type for job in jobs})
            events.emit(events.JOB_SUBMITTED, count=len(jobs), created=created, types=names)

    # ── operate ──────────────────────────────────────────────────────────────────────────────

    async def record(self, job_id: str) -> JobRecord:
        """Read everything about a job, or raise UnknownJob."""
        engine = await self.engine()
        found = await self.repeatable(lambda: engine.inspector.job(job_id))
        if found is None:
            raise unknown(job_id)
        return found

    async def change(
        self, verb: str, change: Callable[[JobStore], Awaitable[list[Changed]]], job_id: str
    ) -> ChangeAnswer:
        """Do one operator's verb to one job, and wake who may care."""
        engine = await self.engine()
        (changed, *_), again = await self.repeated(lambda: change(engine.jobs))
        if changed.answer is ChangeAnswer.UNKNOWN:
            if again and verb == "erase":
                return ChangeAnswer.DONE  # by the first try, whose answer was lost
            raise unknown(job_id)
        if changed.answer is ChangeAnswer.CONFLICT:
            state = changed.state.value if changed.state else "gone"
            raise WrongState(
                f"cannot {verb} job `{job_id}`: it is {state}",
                hint=_REMEDIES.get(verb, "look at `await handle.status()` first"),
                value=state,
            )
        if verb == "cancel":
            events.emit(events.JOB_CANCELLED, job_id=job_id, answer=changed.answer)
            requested = changed.answer is ChangeAnswer.REQUESTED
            await engine.wakeup.notify(CANCEL_TOPIC if requested else FINISHED_TOPIC)
        elif verb in _MAKES_WORK:
            record = await self.record(job_id)
            await engine.wakeup.notify(queue_topic(record.job.queue))
        return changed.answer


_MAKES_WORK = frozenset({"unhold", "retry", "replay"})
_REMEDIES = {
    "cancel": "only a job that has not ended can be cancelled",
    "hold": "only a job that has not ended can be held",
    "unhold": "only a job that has not ended can be held and unheld",
    "retry": "only a waiting job can be made due now, and only a dead one retried; "
    "`await handle.replay()` starts any job that has ended anew, and its effects happen again",
    "replay": "only a job that has ended can be run again; cancel it first, or wait",
    "erase": "only a job that has ended can be erased; cancel it first, or wait",
}


async def wake_workers(engine: Engine) -> None:
    """Wake all workers, because something that kept jobs from running may have changed."""
    # There may be many more queues than those that anybody serves.
    workers = await engine.inspector.workers()
    for name in sorted({name for worker in workers for name in worker.queues}):
        await engine.wakeup.notify(queue_topic(name))


def raise_conflict(job: NewJob, answer: Submitted) -> None:
    """Raise if the key of a submission was used before with another body."""
    if answer.answer is SubmitAnswer.CONFLICT and job.key is not None:
        raise KeyConflict(
            f"the idempotency key {shown(job.key.key)} of tenant {shown(job.tenant)} belongs to "
            f"job `{answer.id}`, which was submitted with another type, arguments or options",
            hint="use another key for another job; for the same job repeat exactly the same call",
            value=job.key.key,
        )


def unknown(job_id: str) -> UnknownJob:
    """Make the error for an id that leads nowhere."""
    return UnknownJob(
        f"no job `{job_id}` is in the store",
        hint="check the id and the address of the store; jobs that ended are removed after the "
        "time set by keep_finished and keep_dead",
        value=job_id,
    )


def queue_in_use(name: str) -> WrongState:
    """Make the error for a queue that cannot be removed yet."""
    return WrongState(
        f"the queue {shown(name)} is in use: it has jobs that have not ended, or a worker serves "
        "it",
        hint="let its jobs end or cancel them, stop its workers, and try again",
        value=name,
    )


def _secrets(versions: Sequence[TypeRow]) -> tuple[str, ...]:
    """Return the secret arguments of all versions of a type: any of them may run the job."""
    names: set[str] = set()
    for row in versions:
        listed = row.options.get("secrets")
        if isinstance(listed, (list, tuple)):
            names.update(map(str, cast("Sequence[object]", listed)))
    return tuple(sorted(names))


def _key(name: str, args: bytes, options: Options) -> IdempotencyKey:
    body = hashlib.sha256(b"\n".join((name.encode(), payload.canonical(args), options.given)))
    return IdempotencyKey(key=options.key or "", body=body.hexdigest())
