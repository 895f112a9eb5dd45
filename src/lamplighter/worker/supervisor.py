"""The supervisor: keeps its children's leases, buries them, and ends them in peace."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.fleet import Fleet
from lamplighter.model.errors import InvalidApp, LamplighterError, StoreError, every_error
from lamplighter.model.stride import QueueStride
from lamplighter.observability import calls, events, exposition, health
from lamplighter.observability.failures import process_log
from lamplighter.observability.health import Health
from lamplighter.port.store import Engine
from lamplighter.port.values import NewWorker, TypeInfo
from lamplighter.service import Service
from lamplighter.worker import descendants, systemd
from lamplighter.worker.accounts import Accounts, Tallier
from lamplighter.worker.autoscale import Scaler
from lamplighter.worker.bench import process_slots
from lamplighter.worker.burial import Burial, Counts, suspects
from lamplighter.worker.crew import Crew
from lamplighter.worker.ending import CLOSE, KILL_AFTER, LAST_CALL, Ending, unless
from lamplighter.worker.health import HealthWatch
from lamplighter.worker.keeper import Keeper
from lamplighter.worker.link import Broken, Convicted, Hello, Hurt, Isolate, Slot, Told
from lamplighter.worker.membership import Membership
from lamplighter.worker.probation import SENTENCE, Probation
from lamplighter.worker.process import ChildProcess, Hooks, Plan
from lamplighter.worker.rush import make_way
from lamplighter.worker.watch import Watch

MOST_CHILDREN = 4
START_TRIES = 3
"""A worker none of whose children ever started gives up after so many failures in a row."""
UNSTARTED = 1_000
"""Of so many jobs at most a worker tells that it has claimed, but not started them."""
UNHURRIED = 86_400.0
"""Seconds that the jobs of a child get which is replaced through no fault of theirs."""
STOPPING = 5.0
"""Seconds between two words on what a worker that ends waits for."""
NAMED = 5
"""Jobs that are named then."""

Services = Callable[[Engine, Settings, Fleet], Sequence[Service]]
"""Makes services that run in the supervisor beside its own; the coordinator's, usually.

They may ask about the other workers.
"""


def no_services(_engine: Engine, _settings: Settings, _fleet: Fleet) -> Sequence[Service]:
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
        self._spec = spec
        self._settings = settings
        self._services = services
        self._on_event = on_event
        self._plan = Plan(
            spec=spec,
            settings=settings,
            slots=settings.slots,
            queues=queues,
            events=on_event is not None,
        )
        self._accounts = Accounts(settings.metrics_names)
        self._hooks = Hooks(
            on_counted=self._accounts.hear,
            on_hello=self._on_hello,
            on_resync=self._on_resync,
            on_ask_cancels=self._on_ask_cancels,
            on_told=_on_told,
            on_convicted=self._on_convicted,
            on_hurt=self._on_hurt,
            on_let_go=self._on_let_go,
        )
        children = settings.children or min(os.cpu_count() or 1, MOST_CHILDREN)
        self._crew = self._make_crew(children, self._plan)
        self._crew_alone = self._make_crew(1, replace(self._plan, alone=True))
        """The child that runs no handler itself, so that none can kill those that run alone."""
        self._born: dict[str, int] = {}
        self._was_ready = False
        self._hello: Hello | None = None
        self.serving = False
        """Whether the store knows it and a child of it has been ready."""
        self._slot: Slot | None = None
        """The slot of the versions that it has told the others of."""
        self._probation = Probation(self._tell_children)
        self._error: BaseException | None = None
        self._loops: tuple[Service, ...] = ()
        """What runs in this process beside the children."""
        self._ending = Ending()
        self._stopping_again: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Work until drained. Raises what kept every child from starting, or broke the worker."""
        if self._settings.metrics:
            self._accounts.calls = calls.watch()
        stop_listening = None if self._on_event is None else events.listen(self._on_event)
        killer = runtime.spawn(self._kill_after_grace(), name="grace", on_crash=self._grace_broke)
        try:
            engine = connect(self._settings.url, deadline=self._settings.store_deadline)
            begun = self._ending.begun
            opened = await unless(begun, engine.open())
            try:
                # Who may read only is told so now, and not by every service again and again.
                if opened and await unless(begun, engine.membership.leave(self.id)):
                    await self._work(engine)
            finally:
                await self._close(engine)
        finally:
            killer.cancel()
            if self._stopping_again is not None:
                self._stopping_again.cancel()
            if stop_listening is not None:
                stop_listening()
        if self._error is not None:
            raise self._error

    # ── what one may ask of it ───────────────────────────────────────────────────────────────

    @property
    def children(self) -> list[ChildProcess]:
        """All child processes that are not buried yet."""
        return [*self._crew.children, *self._crew_alone.children]

    @property
    def size(self) -> int:
        """How many children it wants that run handlers beside each other."""
        return self._crew.size

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues it serves, once its first child has told them."""
        return () if self._hello is None else self._hello.queues

    @property
    def draining(self) -> bool:
        """Whether it has been told to come to an end."""
        return self._ending.begun.is_set()

    def health(self) -> Health:
        """Look at its loops."""
        newest_first = bool(self._settings.fire_newest_first)
        return health.look(self._loops, runtime.monotonic(), newest_first=newest_first)

    async def metrics(self) -> str:
        """Write what it and its children have done, as its metrics have it."""
        meter = self._accounts.look(
            self.health(), slots=self._slots, busy=self.running(), children=len(self.children)
        )
        return exposition.text_of(meter)

    def drain(self) -> None:
        """Come to an end: at first within the grace, called again within the short one."""
        grace = self._settings.short_grace if self.draining else self._settings.grace
        self._ending.within(grace)
        self._crew.end(grace)
        self._crew_alone.end(grace)
        # At last: telling it may fail.
        self._tell_stopping()

    def resize(self, count: int) -> None:
        """Want another number of children; those that are too many finish what they have."""
        if not self.draining:
            self._crew.resize(count, self._settings.grace)

    def reload(self) -> None:
        """Replace every child by a fresh one, which reads the program anew."""
        if not self.draining:
            events.emit(events.WORKER_RELOADED, worker=self.id, children=self._crew.size)
            self._crew.reload()
            self._crew_alone.reload()

    def kill_one(self) -> int | None:
        """Kill a working child without warning, to show what follows; gives its pid."""
        ready = [child for child in self._crew.active if child.ready]
        if not ready:
            return None
        victim = max(ready, key=lambda child: child.ledger.running())
        victim.kill()
        return victim.pid

    # ── the parts ────────────────────────────────────────────────────────────────────────────

    async def _close(self, engine: Engine) -> None:
        closing = runtime.spawn(engine.close(), name="close", on_crash=_complain)
        await asyncio.wait({closing}, timeout=CLOSE if self.draining else None)
        events.emit(events.WORKER_STOPPED, worker=self.id)

    async def _work(self, engine: Engine) -> None:
        settings = self._settings
        self._burial = burial = Burial(engine, settings, self._accounts.buried)
        self._keeper = Keeper(engine, settings, self._living)
        membership = Membership(engine, settings, self)
        services = [
            self._keeper,
            Watch(settings, burial, self._living, self._retire),
            *([Tallier(engine, self.id, self._accounts.take)] if settings.metrics else ()),
            membership,
            *self._services(engine, settings, membership.fleet),
        ]
        if settings.children_most:
            services.append(Scaler(engine, settings, self))
        # Those two never wait for the store, so that no trouble of the store can make them late.
        vital = services[:2]
        self._loops = self._accounts.loops = tuple(services)
        make_way(services, self._living)
        services.append(HealthWatch(self.id, self.health))
        if systemd.wanted():
            services.append(systemd.Notifier(self, loops=lambda: vital))
        for service in services:
            service.start()
        try:
            self._crew.begin()
            self._crew_alone.begin()
            if not await unless(self._ending.over, self._all_over()):
                self._crew.give_up()
                self._crew_alone.give_up()
                _complain_of_silence()
        finally:
            self._kill_all()
            # The keeper goes last: others may still write under the leases it keeps.
            for service in reversed(services):
                await unless(self._ending.over, service.stop())
            process_log().close()

    async def _all_over(self) -> None:
        await asyncio.gather(self._crew.over(), self._crew_alone.over())

    @property
    def _slots(self) -> int:
        return self._crew.size * self._plan.slots + process_slots(self._settings)

    def running(self) -> int:
        """Count the handlers that run."""
        return sum(child.ledger.running() for child in self.children)

    def unstarted(self) -> list[str]:
        """Return the ids of claimed jobs whose handlers were not called, up to `UNSTARTED`."""
        ids = (entry.id for child in self.children for entry in child.ledger.unstarted())
        return list(islice(ids, UNSTARTED))

    def _living(self) -> list[ChildProcess]:
        return self.children

    def _crew_of(self, child: ChildProcess) -> Crew:
        return self._crew_alone if child.alone else self._crew

    def _make_crew(self, size: int, plan: Plan) -> Crew:
        return Crew(
            size,
            make=lambda: self._make_child(plan),
            bury=self._bury,
            on_false_start=self._on_false_start,
        )

    def _make_child(self, plan: Plan) -> ChildProcess:
        kind = "p" if plan.alone else "c"
        number = self._born[kind] = self._born.get(kind, -1) + 1
        return ChildProcess(f"{self.id}/{kind}{number}", plan, self._hooks)

    def _retire(self, child: ChildProcess, why: str) -> None:
        self._crew_of(child).retire(child, self._settings.grace, why)

    def _kill_all(self) -> None:
        self._crew.kill_all()
        self._crew_alone.kill_all()

    async def _bury(self, child: ChildProcess, status: int) -> None:
        # Before anything is waited for: other children claim meanwhile, and the store may fail.
        self._probation.suspect(suspects(child), "two processes died that ran it")
        # What its handlers have started must not go on working for a job that is given back.
        await asyncio.to_thread(descendants.kill_marked, f"{descendants.CHILD}={child.worker}")
        counts = await self._burial.bury(child) if child.ready else Counts(0, 0)
        in_peace = child.dismissed or (child.draining and status == 0)
        if not in_peace:
            events.emit(
                events.CHILD_DIED,
                worker=child.worker,
                pid=child.pid,
                alone=child.alone,
                status=status,
                started=counts.started,
                unstarted=counts.unstarted,
                error=None if child.broken is None else child.broken.cause,
            )

    def _on_false_start(self, child: ChildProcess, status: int) -> None:
        if not self._was_ready and self._crew_of(child).failures >= START_TRIES:
            self._error = _start_error(self._spec, child.broken, status)
            self.drain()

    def _tell_stopping(self) -> None:
        """Say what is waited for, now and then again."""
        if self._stopping_again is not None:
            self._stopping_again.cancel()
        now, left = runtime.boottime(), self._ending.left(0.0)
        entries = [e for child in self.children for e in child.ledger.entries.values()]
        running = sorted((e for e in entries if e.hard_end is not None), key=lambda e: e.started_at)
        events.emit(
            events.WORKER_STOPPING,
            worker=self.id,
            running=len(running),
            seconds=max(0.0, left),
            jobs=[
                {"job_id": e.id, "type": e.type, "seconds": now - e.started_at}
                for e in running[:NAMED]
            ],
        )
        if running and left > STOPPING:
            loop = asyncio.get_running_loop()
            self._stopping_again = loop.call_later(STOPPING, self._tell_stopping)

    async def _kill_after_grace(self) -> None:
        await self._ending.reached(KILL_AFTER)
        self._kill_all()
        await self._ending.reached(LAST_CALL)
        self._ending.over.set()

    def _grace_broke(self, error: BaseException) -> None:
        """End with the error: nobody would kill children that do not end in time."""
        _complain(error)
        self._error = self._error or error
        if not self.draining:
            self.drain()
        loop, ending = asyncio.get_running_loop(), self._ending
        loop.call_later(max(ending.left(KILL_AFTER), 0.0), self._kill_all)
        loop.call_later(max(ending.left(LAST_CALL), 0.0), ending.over.set)

    # ── what children say ────────────────────────────────────────────────────────────────────

    def _on_hello(self, child: ChildProcess, hello: Hello) -> None:
        if not child.alone:
            # The other one opens nothing that handlers need, so it says nothing about them.
            self._was_ready = True
            self._hello = hello
            if self._settings.metrics:
                self._accounts.expect(hello.queues, [info["name"] for info in hello.types])
        if left := self._probation.left():
            child.say(Isolate(left))
        if self._slot is not None:
            child.say(self._slot)
        # Only now it claims: a first claim must not take what has to run alone.
        child.reassure(runtime.boottime())
        self._crew_of(child).ready(child)
        events.emit(events.CHILD_STARTED, worker=child.worker, pid=hello.pid, alone=child.alone)

    def member(self) -> NewWorker | None:
        """Return what others may know of this worker, once there is something to know."""
        hello = self._hello
        if hello is None:
            return None
        return NewWorker(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=hello.queues,
            slots=self._slots,
            types=tuple(TypeInfo(**fields) for fields in hello.types),
        )

    def joined(self, member: NewWorker) -> None:
        """Note as what it has joined: its children claim what their versions take."""
        hashes = {info.name: info.hash for info in member.types}
        self._slot = Slot(member.version_slot, hashes)
        self._tell_children(self._slot)

    def _tell_children(self, message: Isolate | Slot) -> None:
        for child in self.children:
            # The others hear of it when they are ready.
            if child.ready:
                child.say(message)

    def _on_convicted(self, convicted: Convicted) -> None:
        self._probation.isolate(convicted.job_type, SENTENCE, convicted.how)

    def _on_hurt(self, child: ChildProcess, hurt: Hurt) -> None:
        """Replace a child in which a handler has changed what all handlers share."""
        crew, how = self._crew_of(child), f"two processes were hurt that ran it: {hurt.how}"
        if any(other.draining for other in crew.children if other is not child):
            # The one before is still there, for what runs beside: they must not become many.
            for name in hurt.types:
                self._probation.isolate(name, SENTENCE, how)
        else:
            self._probation.suspect(hurt.types, how)
        # What runs beside may take its own time: it has done nothing.
        crew.retire(child, UNHURRIED, hurt.how)

    def _on_let_go(self, child: ChildProcess) -> None:
        runtime.spawn(self._burial.release(child), name="release", on_crash=_complain)

    def _on_ask_cancels(self, child: ChildProcess) -> None:
        look = self._keeper.look_for_cancels(child)
        runtime.spawn(look, name="look for cancels", on_crash=_complain)

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


async def run_until_signalled(supervisor: Supervisor) -> None:
    """Run a worker; SIGTERM and Ctrl-C drain it, a second one hurries; SIGHUP reloads it."""
    loop = asyncio.get_running_loop()
    reactions = {
        signal.SIGTERM: supervisor.drain,
        signal.SIGINT: supervisor.drain,
        signal.SIGHUP: supervisor.reload,
    }
    for number, reaction in reactions.items():
        loop.add_signal_handler(number, reaction)
    try:
        await supervisor.run()
    finally:
        # All is done: a late signal must not make a good end look like a bad one.
        signal.pthread_sigmask(signal.SIG_BLOCK, reactions)
        for number in reactions:
            loop.remove_signal_handler(number)


def _on_told(told: Told) -> None:
    events.emit(told.name, **told.fields)


def _complain(error: BaseException) -> None:
    events.emit(events.SERVICE_ERROR, service="supervisor", error=error, expected=False)


def _complain_of_silence() -> None:
    told = (
        "the store did not answer until the end: jobs that were still held here come back when "
        "their leases end"
    )
    events.emit(events.SERVICE_ERROR, service="supervisor", error=told, expected=True)


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
