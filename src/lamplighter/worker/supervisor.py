"""The supervisor: starts children, keeps their leases, buries them, and ends them in peace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import InvalidApp, LamplighterError, StoreError, every_error
from lamplighter.model.stride import QueueStride
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import NewWorker, TypeInfo
from lamplighter.service import Service
from lamplighter.worker.burial import Burial, Counts
from lamplighter.worker.keeper import Keeper
from lamplighter.worker.link import Broken, Hello, Told
from lamplighter.worker.process import ChildProcess, Hooks, Plan
from lamplighter.worker.watch import Watch

MOST_CHILDREN = 4
START_TRIES = 3
"""A worker none of whose children ever started gives up after so many failures in a row."""
KILL_AFTER = 2.0
"""Children that have not ended this long after their grace are killed."""
YOUNG = 1.0
"""A child that dies younger than this is replaced after a growing pause."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
WAIT_FOR_HELLO = 0.1

Services = Callable[[Engine, Settings], Sequence[Service]]
"""Makes services that run in the supervisor beside its own; the coordinator's, usually."""


def no_services(_engine: Engine, _settings: Settings) -> Sequence[Service]:
    """Run nothing beside the worker."""
    return ()


class Supervisor:
    """A worker. ``run`` lives until ``drain`` was called and all children have ended.

    ``on_event`` gets every event of the supervisor and of its children, each job's start and end
    included. Without it children tell only what is rare.
    """

    def __init__(
        self,
        spec: str,
        settings: Settings,
        *,
        queues: QueueStride | None = None,
        services: Services = no_services,
        on_event: events.Listener | None = None,
    ) -> None:
        self.id = runtime.incarnation()
        self.children: list[ChildProcess] = []
        self._spec = spec
        self._settings = settings
        self._services = services
        self._on_event = on_event
        self._count = settings.children or min(os.cpu_count() or 1, MOST_CHILDREN)
        self._plan = Plan(
            spec=spec,
            settings=settings,
            slots=settings.slots,
            queues=queues,
            events=on_event is not None,
        )
        self._hooks = Hooks(on_hello=self._on_hello, on_resync=self._on_resync, on_told=_on_told)
        self._born = 0
        self._failures = 0
        self._was_ready = False
        self._member: NewWorker | None = None
        self._error: BaseException | None = None
        self._draining = False
        self._deadline = 0.0
        self._told_to_drain = asyncio.Event()
        self._burials: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Work until drained. Raises what kept every child from starting, or broke the worker."""
        stop_listening = None if self._on_event is None else events.listen(self._on_event)
        try:
            engine = connect(self._settings.url, deadline=self._settings.store_deadline)
            await engine.open()
            try:
                await self._work(engine)
            finally:
                await engine.close()
                events.emit(events.WORKER_STOPPED, worker=self.id)
        finally:
            if stop_listening is not None:
                stop_listening()
        if self._error is not None:
            raise self._error

    @property
    def draining(self) -> bool:
        """Whether it has been told to come to an end."""
        return self._draining

    def drain(self) -> None:
        """Come to an end: at first within the grace, called again within the short one."""
        grace = self._settings.short_grace if self._draining else self._settings.grace
        deadline = runtime.boottime() + grace
        self._deadline = min(self._deadline, deadline) if self._draining else deadline
        self._draining = True
        for child in self.children:
            child.drain(grace)
        self._told_to_drain.set()

    # ── the parts ────────────────────────────────────────────────────────────────────────────

    async def _work(self, engine: Engine) -> None:
        burial = Burial(engine, self._settings)
        self._keeper = Keeper(engine, self._settings, self._living)
        services = [
            self._keeper,
            Watch(self._settings, burial, self._living),
            Membership(engine, self._settings, self.id, lambda: self._member, self._running),
            *self._services(engine, self._settings),
        ]
        for service in services:
            service.start()
        killer = runtime.spawn(self._kill_after_grace(), name="grace", on_crash=self._grace_broke)
        try:
            await asyncio.gather(*(self._keep_one_alive(burial) for _ in range(self._count)))
            await asyncio.gather(*self._burials, return_exceptions=True)
        finally:
            killer.cancel()
            for child in self.children:
                child.kill()
            # The keeper goes last: others may still write under the leases it keeps.
            for service in reversed(services):
                await service.stop()

    def _living(self) -> list[ChildProcess]:
        return self.children

    def _running(self) -> int:
        return sum(child.ledger.running() for child in self.children)

    # ── one child after another ──────────────────────────────────────────────────────────────

    async def _keep_one_alive(self, burial: Burial) -> None:
        """Start a child, wait for its end, start the next; the burial holds nobody up."""
        while not self._draining:
            child = ChildProcess(f"{self.id}/c{self._born}", self._plan, self._hooks)
            self._born += 1
            self.children.append(child)
            status = await self._live(child)
            bury = self._bury(burial, child, status)
            self._burials.append(runtime.spawn(bury, name="bury", on_crash=_complain))
            self._count_failure(child, status)
            await self._rest_after(child)

    async def _live(self, child: ChildProcess) -> int:
        try:
            await child.start()
        except OSError as error:
            # No room for another process, or no memory: as good as a child that died at once.
            child.broken = Broken("error", f"no child process can be started: {error}", "")
            child.dead = True
            return -1
        if self._draining:
            child.kill()
        return await child.died()

    async def _bury(self, burial: Burial, child: ChildProcess, status: int) -> None:
        try:
            counts = await burial.bury(child) if child.ready else Counts(0, 0)
        finally:
            self.children.remove(child)
            current = asyncio.current_task()
            self._burials = [task for task in self._burials if task is not current]
        in_peace = child.draining and (status == 0 or child.dismissed)
        if not in_peace:
            events.emit(
                events.CHILD_DIED,
                worker=child.worker,
                pid=child.pid,
                status=status,
                started=counts.started,
                unstarted=counts.unstarted,
                error=None if child.broken is None else child.broken.cause,
            )

    def _count_failure(self, child: ChildProcess, status: int) -> None:
        if child.ready or self._draining:
            return
        self._failures += 1
        if not self._was_ready and self._failures >= START_TRIES:
            self._error = _start_error(self._spec, child.broken, status)
            self.drain()

    async def _rest_after(self, child: ChildProcess) -> None:
        if child.ready and runtime.boottime() - child.born_at > YOUNG:
            return
        pause = min(FIRST_PAUSE * 2 ** min(self._failures, 10), LONGEST_PAUSE)
        waiter = asyncio.ensure_future(self._told_to_drain.wait())
        sleeper = asyncio.ensure_future(runtime.sleep(pause))
        await asyncio.wait({waiter, sleeper}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        sleeper.cancel()

    async def _kill_after_grace(self) -> None:
        await self._told_to_drain.wait()
        while (left := self._deadline + KILL_AFTER - runtime.boottime()) > 0:
            # A second signal may bring the deadline nearer.
            await runtime.sleep(min(left, 0.1))
        self._kill_all()

    def _grace_broke(self, error: BaseException) -> None:
        """End with the error: nobody would kill children that do not end in time."""
        _complain(error)
        self._error = self._error or error
        if not self._draining:
            self.drain()
        left = self._deadline + KILL_AFTER - runtime.boottime()
        asyncio.get_running_loop().call_later(max(left, 0.0), self._kill_all)

    def _kill_all(self) -> None:
        for child in self.children:
            child.kill()

    # ── what children say ────────────────────────────────────────────────────────────────────

    def _on_hello(self, child: ChildProcess, hello: Hello) -> None:
        self._was_ready = True
        self._failures = 0
        self._member = NewWorker(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=hello.queues,
            slots=self._count * self._plan.slots,
            types=tuple(TypeInfo(**fields) for fields in hello.types),
        )
        events.emit(events.CHILD_STARTED, worker=child.worker, pid=hello.pid)

    def _on_resync(self, child: ChildProcess, numbers: list[int]) -> None:
        runtime.spawn(self._answer(child, numbers), name="resync", on_crash=_complain)

    async def _answer(self, child: ChildProcess, numbers: list[int]) -> None:
        """Tell a child what is still its own; as long as the store is silent, it has to wait."""
        while not child.dead:
            try:
                await self._keeper.confirm(child, numbers)
            except StoreError as error:
                events.emit(events.SERVICE_ERROR, service="resync", error=error, expected=True)
                await runtime.sleep(0.25)
            else:
                return


class Membership(Service):
    """Says that the worker lives, and enters it again when the store has forgotten it."""

    name = "membership"

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        worker: str,
        member: Callable[[], NewWorker | None],
        running: Callable[[], int],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._beat = settings.beat
        self._worker = worker
        self._member = member
        self._running = running
        self._joined: NewWorker | None = None

    async def step(self) -> float:
        """Join or beat. Until the first child has said what it can run there is nothing to say."""
        member = self._member()
        if member is None:
            return WAIT_FOR_HELLO
        first = self._joined is None
        if self._joined != member or not await self._is_known():
            await self._engine.membership.join(member)
            self._joined = member
        if first:
            events.emit(events.WORKER_STARTED, worker=member.id, queues=member.queues)
        return self._beat

    async def _is_known(self) -> bool:
        return (await self._engine.membership.beat(self._worker, self._running())).known

    async def stop(self) -> None:
        """Take the worker out."""
        await super().stop()
        if self._joined is not None:
            with contextlib.suppress(StoreError):
                await self._engine.membership.leave(self._worker)


async def run_until_signalled(supervisor: Supervisor) -> None:
    """Run a worker; SIGTERM and Ctrl-C drain it, a second one shortens the grace."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.drain)
    try:
        await supervisor.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _on_told(told: Told) -> None:
    events.emit(told.name, **told.fields)


def _complain(error: BaseException) -> None:
    events.emit(events.SERVICE_ERROR, service="supervisor", error=error, expected=False)


def _start_error(spec: str, broken: Broken | None, status: int) -> LamplighterError:
    if broken is None and status < 0:
        return InvalidApp(
            f"no child process of the worker stays alive: the last one was killed by signal "
            f"{-status} while it imported `{spec}`",
            hint="if nobody killed it, look for lack of memory or a crash in an imported library",
            value=spec,
        )
    if broken is None:
        return InvalidApp(
            f"no child process of the worker stays alive: the last one ended with status {status} "
            f"while it imported `{spec}`",
            hint="look for its words above; try to import the module by hand",
            value=spec,
        )
    kinds = {kind.code: kind for kind in every_error()}
    return kinds.get(broken.code, InvalidApp)(broken.cause, hint=broken.hint, value=spec)
