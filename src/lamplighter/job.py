"""What ``@app.job`` makes of a function: the same function, and the ways to have it run later."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast

from lamplighter import options as option
from lamplighter import runtime
from lamplighter.client import SPREAD, Client, raise_conflict
from lamplighter.context import Context
from lamplighter.handle import Handle
from lamplighter.model import ids
from lamplighter.model.errors import InvalidArguments
from lamplighter.model.job import NewJob
from lamplighter.model.names import shown
from lamplighter.options import NO_OPTIONS, Options, SubmitOptions
from lamplighter.registry import JobType, Registry

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Call(Generic[R_co]):
    """One job, checked and ready to be submitted.

    It keeps its id from when somebody first sees it or submits it: submitting the same call again,
    after an error that left open whether it was stored, stores nothing twice.
    """

    __slots__ = ("_new", "_placed")

    def __init__(self, new: NewJob) -> None:
        self._new = new
        self._placed = new.key is not None

    @property
    def new(self) -> NewJob:
        """The job, with the id that it has or will have."""
        self._placed = True
        return self._new

    @property
    def id(self) -> str:
        """Id the job has or will have."""
        return self.new.id

    def beside(self, shard: int) -> NewJob:
        """Return the job with an id in the shard of its neighbours, if it may choose."""
        if not self._placed and ids.shard_of(self._new.id) != shard:
            self._new = replace(self._new, id=ids.moved(self._new.id, shard))
        return self.new

    def __repr__(self) -> str:
        return f"<Call {self.new.type} {self.new.id}>"


class Prepared(Generic[P, R_co]):
    """A job type together with the options of a submission."""

    def __init__(self, client: Client, job_type: JobType, options: Options) -> None:
        self._client = client
        self._type = job_type
        self._options = options.over(
            queue=job_type.queue,
            level=job_type.level,
            delivery=job_type.delivery,
            secrets=job_type.secrets,
        )

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """Check the arguments and make the job, without submitting it yet."""
        kind = self._type
        return Call(self._client.new_job(kind.name, kind.bind(args, kwargs), self._options))

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R_co]:
        """Have the job run with these arguments."""
        return await submit_one(self._client, self.call(*args, **kwargs))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R_co]:
        """``submit`` for code without an event loop."""
        call = self.call(*args, **kwargs)
        return self._client.portal.run(
            lambda: submit_one(self._client, call), instead=f"{self._type.name}.submit(…)"
        )


class Job(Prepared[P, R_co]):
    """A job type in the hand of the program that defines it."""

    def __init__(self, client: Client, job_type: JobType) -> None:
        super().__init__(client, job_type, NO_OPTIONS)
        functools.update_wrapper(cast("Callable[..., object]", self), job_type.function)

    @property
    def type(self) -> JobType:
        """Name, handler and default options."""
        return self._type

    @property
    def registry(self) -> Registry:
        """The job types of the program it belongs to, and what they need."""
        return self._client.registry

    @property
    def name(self) -> str:
        """The name under which jobs of this type are stored."""
        return self._type.name

    def options(self, **options: Unpack[SubmitOptions]) -> Prepared[P, R_co]:
        """Say more about a submission: when, for whom, how urgent, how often."""
        return Prepared(self._client, self._type, option.read(options))

    def __repr__(self) -> str:
        return f"<Job {self._type.name}>"


# Calling a job calls the function itself, for tests and for reuse. The four shapes of handlers
# differ in what that takes and gives, so each has its class.


class AsyncJob(Job[P, R]):
    """Made of ``async def handler(…)``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the handler here and now."""
        return cast("Coroutine[Any, Any, R]", self._type.function(*args, **kwargs))


class AsyncContextJob(Job[P, R]):
    """Made of ``async def handler(ctx: Context, …)``."""

    def __call__(
        self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Call the handler here and now."""
        return cast("Coroutine[Any, Any, R]", self._type.function(ctx, *args, **kwargs))


class SyncJob(Job[P, R]):
    """Made of ``def handler(…)``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler here and now."""
        return cast("R", self._type.function(*args, **kwargs))


class SyncContextJob(Job[P, R]):
    """Made of ``def handler(ctx: Context, …)``."""

    def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler here and now."""
        return cast("R", self._type.function(ctx, *args, **kwargs))


def make_job(client: Client, job_type: JobType) -> Job[..., Any]:
    """Return the job in the shape that is answered."""
    if job_type.is_async:
        if job_type.wants_context:
            return AsyncContextJob[..., Any](client, job_type)
        return AsyncJob[..., Any](client, job_type)
    if job_type.wants_context:
        return SyncContextJob[..., Any](client, job_type)
    return SyncJob[..., Any](client, job_type)


async def submit_one(client: Client, call: Call[R]) -> Handle[R]:
    """Store one job; a key used before with another body is an error."""
    (answer,) = await client.submit([call.new])
    raise_conflict(call.new, answer)
    return Handle(client, answer.id, answer.answer)


async def submit_many(client: Client, calls: Iterable[Call[R]]) -> list[Handle[R]]:
    """Store many jobs; see ``App.submit_many``."""
    if not isinstance(calls, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _not_calls(calls)
    given: list[Call[R]] = []
    for call in calls:
        if not isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _not_calls(call)
        given.append(call)
    jobs = _placed(given) if await client.is_divided() else [call.new for call in given]
    answers = await client.submit(jobs)
    for job, answer in zip(jobs, answers, strict=True):
        raise_conflict(job, answer)
    return [Handle(client, answer.id, answer.answer) for answer in answers]


def _placed(calls: Sequence[Call[Any]]) -> list[NewJob]:
    """Draw one shard for each batch of jobs that may choose it, so that few writes are enough."""
    jobs: list[NewJob] = []
    for start in range(0, len(calls), SPREAD):
        shard = runtime.random_bits(ids.SHARD_BITS)
        jobs += [call.beside(shard) for call in calls[start : start + SPREAD]]
    return jobs


def _not_calls(value: object) -> InvalidArguments:
    return InvalidArguments(
        f"{shown(value)} is not a list of calls",
        hint="give calls, as in submit_many([charge.call('o-1', 995), charge.call('o-2', 100)])",
        value=value,
    )
