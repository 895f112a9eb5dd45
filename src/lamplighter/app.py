"""The App: where a program says which functions are jobs, and in which store they live."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from lamplighter import config, payload
from lamplighter import options as option
from lamplighter.client import Client
from lamplighter.command import Command, CommandType
from lamplighter.context import Context
from lamplighter.handle import Handle
from lamplighter.hooks import Hook
from lamplighter.hooks import check as check_hook
from lamplighter.inspection import DeadLetters, Jobs, Queues, Tenants, Types, Workers
from lamplighter.job import (
    AsyncContextJob,
    AsyncJob,
    Call,
    Job,
    SyncContextJob,
    SyncJob,
    make_job,
    submit_many,
    submit_one,
)
from lamplighter.middleware import Middleware
from lamplighter.middleware import check as checked_middleware
from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidHandler
from lamplighter.model.ids import check_id
from lamplighter.model.isolation import Isolation
from lamplighter.model.job import Delivery, Level
from lamplighter.model.names import DEFAULT_QUEUE, check_name, shown
from lamplighter.model.schedule import Calendar
from lamplighter.options import SubmitOptions, TypeOptions
from lamplighter.port.store import Engine
from lamplighter.portal import refuse_inside_loop
from lamplighter.registry import JobType, Registry
from lamplighter.schedules import ScheduleOptions, Schedules

P = ParamSpec("P")
R = TypeVar("R")

Story = Callable[["App"], Awaitable[None]]
"""What ``lamplighter dev`` runs beside the worker, to show a program at work."""
StoryT = TypeVar("StoryT", bound=Story)
JobT = TypeVar("JobT", bound=Job[..., Any])
HookT = TypeVar("HookT", bound=Hook)
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)
ProviderT = TypeVar("ProviderT", bound=Callable[..., object])
T = TypeVar("T")


class _Decorator(Protocol):
    """``@app.job(…)``: takes any of the four shapes of handlers."""

    # The shapes overlap: a coroutine is a result too. The first that fits is meant.
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextJob[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> SyncContextJob[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncJob[P, R]: ...


class App:
    """A program's job types and its way to the store.

    ``url`` says where jobs live; without it the settings do: LAMPLIGHTER_URL, the settings file,
    or a file `lamplighter.db` in the working folder. Nothing is opened before it is needed.
    """

    def __init__(self, url: str | None = None, *, settings: config.Settings | None = None) -> None:
        if settings is None:
            settings = config.load(url=url)
        elif url is not None:
            settings = dataclasses.replace(settings, url=url)
        self._client = Client(settings)
        self.schedules = Schedules(self._client)
        """Schedules in the store."""
        self.jobs = Jobs(self._client)
        """Jobs in the store, their attempts and their logs."""
        self.dead_letters = DeadLetters(self._client)
        """Dead jobs, and their causes."""
        self.queues = Queues(self._client)
        """Queues: what waits in them, and their settings."""
        self.tenants = Tenants(self._client)
        """Tenants: what they have in the store, and their settings."""
        self.types = Types(self._client)
        """Job types that workers have published."""
        self.workers = Workers(self._client)
        """Workers that have joined."""
        self.stories: list[Story] = []
        """Functions registered with ``on_dev``."""

    @property
    def settings(self) -> config.Settings:
        """The settings in force."""
        return self._client.settings

    @property
    def registry(self) -> Registry:
        """The job types registered here."""
        return self._client.registry

    def configure(self, settings: config.Settings) -> None:
        """Use other settings; another store only while none is open."""
        self._client.configure(settings)

    # ── say what a job is ────────────────────────────────────────────────────────────────────

    @overload
    def job(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextJob[P, R]: ...
    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Context, P], R], /) -> SyncContextJob[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> SyncJob[P, R]: ...
    @overload
    def job(self, /, **options: Unpack[TypeOptions]) -> _Decorator: ...
    def job(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TypeOptions]
    ) -> Any:
        """Make a function a job: ``@app.job`` or ``@app.job(queue="payments", timeout=30)``."""

        def register(function: Callable[..., Any]) -> Any:
            return make_job(self._client, self.registry.add(_job_type(function, options)))

        return register if function is None else register(function)

    def command(
        self,
        name: str,
        argv: Sequence[str],
        /,
        *,
        no_retry_codes: Collection[int] = (),
        **options: Unpack[TypeOptions],
    ) -> Job[..., str]:
        """Make a program a job: ``app.command("backup", ["pg_dump", "shop"], timeout=600)``.

        What is submitted by name is given to it as one JSON object on stdin. Code 0 is success,
        with the output as result; ``no_retry_codes`` end the job, others are failed attempts.
        ``env`` and ``cwd`` are those of the command.
        """
        command = Command.checked(
            argv,
            no_retry_codes=no_retry_codes,
            env=option.environment(options.pop("env", None) or {}),
            cwd=options.pop("cwd", None),
        )
        given = _type_options({**options, "name": name})
        return make_job(self._client, self.registry.add(CommandType(command, **given)))

    def schedule(
        self,
        calendar: str | timedelta | Calendar,
        /,
        *,
        id: str | None = None,
        arguments: Mapping[str, object] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[JobT], JobT]:
        """Run a job again and again: ``@app.schedule("0 2 * * *", timezone="Europe/Berlin")``.

        Stands above ``@app.job``. Workers put it into the store when they start. It is called
        like the job type unless ``id`` says otherwise; a job may have several.
        """

        def declare(job: JobT) -> JobT:
            if not isinstance(job, Job):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidHandler(
                    f"{shown(job)} is no job, so it cannot be scheduled",
                    hint="write `@app.schedule(…)` above `@app.job`",
                    value=job,
                )
            call = job.call(**(arguments or {}))
            self.schedules.declare(job.name if id is None else id, calendar, call, options)
            return job

        return declare

    # ── what is around the handlers ──────────────────────────────────────────────────────────

    def provide(self, function: ProviderT) -> ProviderT:
        """Make what handlers need, once per process: ``@app.provide``.

        The return annotation names the type; a handler asks for it with ``db: Db = provided(Db)``.
        A generator's part behind ``yield`` runs after the last handler.
        """
        self.registry.providers.add(function)
        return function

    def override(self, kind: type[T], value: T) -> AbstractContextManager[None]:
        """Provide ``value`` instead of what a provider makes, in a ``with`` block of a test."""
        return self.registry.providers.override(kind, value)

    def middleware(self, *middleware: MiddlewareT) -> MiddlewareT:
        """Run code around each handler: ``@app.middleware``, or several, outermost first.

        What is registered later is further inside. Gives back the first.
        """
        if not middleware:
            raise InvalidHandler(
                "no middleware was given",
                hint="give one, as in `app.middleware(log)`, or decorate it with `@app.middleware`",
            )
        self.registry.middleware += [checked_middleware(each) for each in middleware]
        return middleware[0]

    def on_success(self, hook: HookT) -> HookT:
        """Call this after a job has succeeded: ``@app.on_success``. Best effort."""
        return _added(self.registry.hooks.success, hook)

    def on_failure(self, hook: HookT) -> HookT:
        """Call this after an attempt has failed or timed out: ``@app.on_failure``. Best effort."""
        return _added(self.registry.hooks.failure, hook)

    def on_death(self, hook: HookT) -> HookT:
        """Call this after a job has ended as dead: ``@app.on_death``. Best effort."""
        return _added(self.registry.hooks.death, hook)

    def on_dev(self, story: StoryT) -> StoryT:
        """Have ``lamplighter dev`` run this beside the worker, to show the program at work."""
        self.stories.append(story)
        return story

    # ── submit ───────────────────────────────────────────────────────────────────────────────

    async def submit(
        self, type: str, arguments: Mapping[str, object], **options: Unpack[SubmitOptions]
    ) -> Handle[object]:
        """Submit a job by the name of its type, also of one whose code is elsewhere.

        A type registered here checks the arguments; otherwise the worker that runs it does, and
        queue, priority and delivery are those that its workers published. A name that nobody has
        published yet is accepted too, because a producer may start before the first worker.
        """
        return await submit_one(self._client, await self.call(type, arguments, **options))

    async def call(
        self, type: str, arguments: Mapping[str, object], **options: Unpack[SubmitOptions]
    ) -> Call[object]:
        """Check a job like ``submit`` and make it, without submitting it yet."""
        checked = option.read(options)
        client = self._client
        payload.check_by_name(type, arguments)
        if type in client.registry:
            known = client.registry.get(type)
            args = known.bind((), arguments)
            checked = checked.over(
                queue=known.queue,
                level=known.level,
                delivery=known.delivery,
                secrets=known.secrets,
            )
        else:
            check_name("job type", type)
            # Asked first: what is wrong with a secret argument must be said without quoting it.
            checked = await client.published(type, checked)
            args = payload.encode(dict(arguments), secrets=checked.extras.secrets)
        return Call[object](client.new_job(type, args, checked))

    async def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit many calls, in batches as large as the store takes; a batch is stored whole.

        In a store of several shards every hundred calls go to another of them, those with a key
        to that of their key, and what belongs to each of them is stored whole.

        All calls were checked when they were made, so nothing is stored before all are good. An
        idempotency key used before with another body raises KeyConflict, after the other jobs
        were stored. Submitting the same calls again stores nothing twice.
        """
        return await submit_many(self._client, calls)

    def handle(self, job_id: str) -> Handle[object]:
        """Take a job in hand by its id."""
        return Handle(self._client, check_id(job_id))

    # ── open and close ───────────────────────────────────────────────────────────────────────

    async def engine(self) -> Engine:
        """Return the store, opened for the running event loop."""
        return await self._client.engine()

    def adopt(self, engine: Engine) -> None:
        """Use an engine that is open already, in the running event loop; its owner closes it."""
        self._client.connections.adopt(engine)

    async def open(self) -> Self:
        """Open the store now, to learn now whether it can be reached."""
        await self._client.engine()
        return self

    async def close(self) -> None:
        """Let go of the store. Using the app again opens it again."""
        await self._client.connections.close()
        if self._client.portal.started:
            await asyncio.to_thread(self._client.portal.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def submit_sync(
        self, type: str, arguments: Mapping[str, object], **options: Unpack[SubmitOptions]
    ) -> Handle[object]:
        """``submit`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.submit(type, arguments, **options), instead="app.submit(…)"
        )

    def submit_many_sync(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """``submit_many`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.submit_many(calls), instead="app.submit_many(…)"
        )

    def open_sync(self) -> Self:
        """``open`` for code without an event loop."""
        return self._client.portal.run(self.open, instead="app.open()")

    def close_sync(self) -> None:
        """``close`` for code without an event loop."""
        refuse_inside_loop("app.close()")
        self._client.portal.close()

    def __repr__(self) -> str:
        return f"<App with {counted(len(self.registry), 'job type')}>"


def _added(hooks: list[Hook], hook: HookT) -> HookT:
    check_hook(hook)
    hooks.append(hook)
    return hook


def _job_type(function: Callable[..., Any], options: Mapping[str, object]) -> JobType:
    made = JobType(function, **_type_options(options))
    made.check_secrets()
    return made


def _type_options(options: Mapping[str, object]) -> dict[str, Any]:
    option.check_known(options, TypeOptions.__annotations__, "a job type")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    times = {
        name: check(name, given[name]) if name in given else None
        for name, check in (
            ("timeout", option.positive_seconds),
            ("hard_after", option.hard_after),
            ("stalled_after", option.positive_seconds),
        )
    }
    isolation = Isolation.of(given.get("isolation", Isolation.SHARED))
    return {
        "name": given.get("name"),
        "queue": given.get("queue", DEFAULT_QUEUE),
        "level": Level.of(given.get("priority", "normal")),
        "retry": given.get("retry"),
        "delivery": option.delivery(given.get("delivery", Delivery.AT_LEAST_ONCE)),
        "secrets": option.secrets(given.get("secrets", ())),
        "isolation": isolation,
        "surroundings": option.surroundings(isolation, given),
        **times,
    }
