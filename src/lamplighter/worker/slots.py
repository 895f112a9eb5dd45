"""Processes that run one job each, for jobs that are isolated or suspected.

A process is started for a run when none is idle that is like its job type wants it, and ended
after some idle time, some jobs, or with too much memory. When one dies the job it had is to
blame, and no other. One that cannot start has failed its job, unless the machine had no room. A
run that may not begin before others say so is prepared first: its process is ready and waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.config import Settings
from lamplighter.model.isolation import ORDINARY, Isolation, Surroundings
from lamplighter.model.outcome import Cancelled, Failed, Outcome, Released, TimedOut
from lamplighter.observability import events
from lamplighter.worker import cgroup, failure, limits, outcomes
from lamplighter.worker.link import Broken
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.slot_process import Hooks, Killed, Plan, SlotProcess

IDLE = 30.0
"""Seconds after which a process without a job ends."""
START = 60.0
"""Seconds in which a process must become ready, its providers included."""
PATIENCE = 5.0
"""Seconds that a process has to end by itself."""
CLOSE = 0.5
"""The same when the child ends."""
BACKOFF = Backoff(0.5, 30.0)
"""Seconds that a job keeps its place when there was no room for its process: it would come back at
once. Doubled with each failure."""

_MEGABYTE = 1 << 20


class Slots:
    """The slot processes of one child, at most ``limit`` of them busy."""

    def __init__(
        self,
        *,
        spec: str,
        settings: Settings,
        path: list[str],
        worker: str,
        limit: int,
        on_end: Callable[[Run, Outcome | None], None],
        on_room: Callable[[], None] = lambda: None,
        on_ready: Callable[[Run], None] = lambda _run: None,
        on_sent: Callable[[Run], None] = lambda _run: None,
        may_begin: Callable[[Run], bool] = lambda _run: True,
    ) -> None:
        self.limit = limit
        self._settings = settings
        self._on_end = on_end
        self._on_room = on_room
        self._on_ready = on_ready
        """Told when the process of a prepared run is ready."""
        self._on_sent = on_sent
        """Told when a process has got its job, which is when the job's time begins."""
        self._may_begin = may_begin
        """Asked before a job is sent, and when the process of a prepared run is ready, because that
        may have taken long to start."""
        self._plan = Plan(spec, settings, path, worker)
        self._hooks = Hooks(self._became_ready, self._did)
        self._groups = cgroup.find()
        self._running: dict[int, SlotProcess] = {}
        """The process of each run, by the run's number."""
        self._prepared: set[int] = set()
        """Numbers of the runs that must not begin before `start`."""
        self._paused: dict[int, tuple[Run, asyncio.TimerHandle]] = {}
        """Runs that will be given back, because there was no room for their process."""
        self._alive: dict[SlotProcess, asyncio.Task[None]] = {}
        self._idle: list[SlotProcess] = []
        """The one used last is at the end: it is warm."""
        self._failures: dict[Surroundings, int] = {}
        self._warned: set[Surroundings] = set()
        self._loop = asyncio.get_running_loop()

    @property
    def room(self) -> int:
        """How many more runs could be started now."""
        return self.limit - len(self._running) - len(self._paused)

    @property
    def idle(self) -> int:
        """How many processes wait for a job."""
        return len(self._idle)

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes there are."""
        return [slot.pid for slot in self._alive if slot.pid]

    # ── run ──────────────────────────────────────────────────────────────────────────────────

    def prepare(self, run: Run) -> None:
        """Have a process ready for a run: ``on_ready`` tells when, `start` lets it begin.

        ``on_end`` tells if that comes to nothing. Never waits.
        """
        self._prepared.add(run.number)
        # Its time has not begun.
        run.hard_end = inf
        self._place(run)

    def start(self, run: Run) -> None:
        """Run a job in a process of its own; ``on_end`` tells what it came to. Never waits."""
        if run.number in self._paused:
            # Its process was ready, and has died: it will be given back.
            return
        self._prepared.discard(run.number)
        slot = self._running.get(run.number)
        if slot is None:
            self._place(run)
        else:
            self._send(slot, run)

    def _place(self, run: Run) -> None:
        run.isolated = True
        wanted = run.type.surroundings if run.type.isolation is Isolation.PROCESS else ORDINARY
        slot = self._take_idle(wanted) or self._spawn(wanted)
        slot.run = run
        self._running[run.number] = slot
        if slot.ready:
            self._send(slot, run)

    def _take_idle(self, wanted: Surroundings) -> SlotProcess | None:
        idle = self._idle
        for place in range(len(idle) - 1, -1, -1):
            if idle[place].surroundings == wanted:
                return idle.pop(place)
        return None

    def _spawn(self, wanted: Surroundings) -> SlotProcess:
        working = [slot for slot in self._alive if not slot.killed and slot.retired_at is None]
        if len(working) >= self.limit and self._idle:
            self._idle.pop(0).retire()
        self._warn(wanted)
        slot = SlotProcess(self._plan, wanted, self._groups, self._hooks)
        self._alive[slot] = runtime.spawn(self._attend(slot), name="slot")
        return slot

    def _send(self, slot: SlotProcess, run: Run) -> None:
        """Let a run begin whose process is ready, as far as it may."""
        if not self._may_begin(run):
            slot.run = None
            self._rest(slot)
            self._end(run, Released())
        elif run.number in self._prepared:
            self._on_ready(run)
        else:
            slot.do(run)
            self._on_sent(run)

    def _became_ready(self, slot: SlotProcess) -> None:
        self._failures.pop(slot.surroundings, None)
        if slot.killed is not None or slot.status is not None:
            return
        if slot.run is not None:
            self._send(slot, slot.run)
        else:
            self._rest(slot)

    def _did(self, slot: SlotProcess, run: Run, outcome: Outcome | None) -> None:
        if slot.killed is None and slot.status is None:
            self._rest(slot)
        self._end(run, None if run.stop is Stop.LOST else outcome)

    def _rest(self, slot: SlotProcess) -> None:
        """Keep a process for the next job, unless it has grown old or fat, or was hurt."""
        settings = self._settings
        fat = slot.rss > settings.recycle_mb * _MEGABYTE
        if slot.spent or slot.jobs >= settings.recycle_jobs or fat:
            slot.retire()
            return
        slot.idle_since = runtime.boottime()
        self._idle.append(slot)

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        self._running.pop(run.number, None)
        self._prepared.discard(run.number)
        self._on_end(run, outcome)

    # ── stop ─────────────────────────────────────────────────────────────────────────────────

    def stop(self, run: Run, why: Stop) -> None:
        """Bring a run to its end: tell it, or, if it is lost, kill its process."""
        # A first reason stands, but for the one that forbids to write.
        run.stop = why if why is Stop.LOST or run.stop is None else run.stop
        slot = self._running.get(run.number)
        if run.number in self._paused:
            self._paused.pop(run.number)[1].cancel()
            self._end(run, _unbegun(run))
        elif slot is None:
            return
        elif not run.entered:
            # Its process is still starting, or waits; it will do for another.
            slot.run = None
            if slot.ready and slot.killed is None and slot.status is None:
                self._rest(slot)
            self._end(run, _unbegun(run))
        elif why is Stop.LOST:
            slot.kill(Killed.LOST)
        else:
            slot.halt(run, why)

    def tick(self, now: float) -> None:
        """Kill what is past its hard end, and end what is idle for long. Called by the pulse."""
        for slot in tuple(self._alive):
            if slot.killed is not None:
                continue
            if slot.retired_at is not None:
                if now - slot.retired_at > PATIENCE:
                    slot.kill(Killed.CLOSING)
            elif not slot.ready:
                if now - slot.born_at > START:
                    cause = f"a process did not become ready within {START:g} s"
                    slot.broken = Broken("error", cause, "make the program's import quicker")
                    slot.kill(Killed.SILENT)
            elif slot.run is not None:
                if slot.run.hard_end <= now:
                    slot.kill(Killed.OVERDUE)
            elif now - slot.idle_since > IDLE:
                self._idle.remove(slot)
                slot.retire()

    async def close(self) -> None:
        """End all processes, those that have a job at once, and all within a second or so."""
        for run, timer in tuple(self._paused.values()):
            timer.cancel()
            self._paused.pop(run.number)
            self._end(run, Released())
        idle, self._idle = self._idle, []
        for slot in idle:
            slot.retire()
        for slot in self._alive:
            if slot.retired_at is None:
                slot.kill(Killed.CLOSING)
        await self._buried_within(CLOSE)
        for slot in self._alive:
            slot.kill(Killed.CLOSING)
        await self._buried_within(CLOSE)
        for slot in self._running.copy().values():
            # The system has not ended it; nobody can say what becomes of its job.
            if slot.run is not None:
                self._end(slot.run, None)

    async def _buried_within(self, seconds: float) -> None:
        if self._alive:
            await asyncio.wait(self._alive.values(), timeout=seconds)

    # ── the end of a process ─────────────────────────────────────────────────────────────────

    async def _attend(self, slot: SlotProcess) -> None:
        try:
            await slot.live()
        finally:
            del self._alive[slot]
            if slot in self._idle:
                self._idle.remove(slot)
        run, slot.run = slot.run, None
        if run is None or run.number not in self._running:
            return
        if run.stop is Stop.LOST:
            self._end(run, None)
        elif slot.killed is Killed.OVERDUE:
            overdue = TimedOut(outcomes.out_of_time(run, killed=True))
            self._end(run, Cancelled() if run.stop is Stop.CANCEL else overdue)
        elif slot.killed is Killed.CLOSING:
            self._end(run, outcomes.stopped(run) or Released(started=run.entered))
        elif slot.broken is not None and not (slot.ready or slot.lacks_room):
            error = failure.unstarted(run.type.name, slot.broken)
            self._end(run, Failed(error, began=False))
        elif slot.broken is not None or (not run.entered and self._is_blameless(slot, run)):
            self._pause(slot, run)
        else:
            self._end(run, slot.crash())

    def _is_blameless(self, slot: SlotProcess, run: Run) -> bool:
        """Tell whether a process died before its run had begun, and not because of its job.

        One that was started for a prepared run is that job's own, also when it dies as soon as it
        is ready: else it would start and die for ever. A marked run is not charged: its job would
        be taken for one that ran.
        """
        own = slot.jobs == 0 and run.number in self._prepared and not run.claim.started
        return slot.lacks_room or (slot.ready and not own)

    def _pause(self, slot: SlotProcess, run: Run) -> None:
        """Release a run that could not begin through no fault of its own, a little later."""
        failures = self._failures[slot.surroundings] = self._failures.get(slot.surroundings, 0) + 1
        run.entered = False
        _tell_broken(slot, run)
        del self._running[run.number]
        pause = self._loop.call_later(BACKOFF.after(failures), self._give_back, run)
        self._paused[run.number] = run, pause

    def _give_back(self, run: Run) -> None:
        del self._paused[run.number]
        self._end(run, Released())

    def _warn(self, wanted: Surroundings) -> None:
        if wanted in self._warned:
            return
        self._warned.add(wanted)
        for told in limits.unsupported(wanted.limits, grouped=self._groups is not None):
            events.emit(events.SERVICE_ERROR, service="limits", error=told, expected=True)


def _unbegun(run: Run) -> Outcome | None:
    """Say what a run came to that was stopped before its handler had begun."""
    return Released() if run.stop is Stop.TIMEOUT else outcomes.stopped(run)


def _tell_broken(slot: SlotProcess, run: Run) -> None:
    broken = slot.broken
    cause = slot.crash().how if broken is None else broken.cause
    told = f"no process could be started for `{run.type.name}`; its job is given back: {cause}"
    if broken is not None and broken.hint:
        told += f"\n\nhint: {broken.hint}"
    elif slot.last_words:
        told += f"\n\n{slot.last_words}"
    events.emit(events.SERVICE_ERROR, service="slots", error=told, expected=False)
