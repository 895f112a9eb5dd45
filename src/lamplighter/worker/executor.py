"""Decides what runs when and where: the slots of a child, and the claims that wait for one.

A start is reported before the handler's first instruction, all starts of one turn together. Before
that, those of at-most-once jobs are marked in the store, alone ones when their process is ready:
without its mark, such a claim is known never to have been started. The slots are the only bound;
what was claimed beyond them waits here and can be given back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.middleware import Middleware
from lamplighter.model.errors import InvalidInput
from lamplighter.model.isolation import Isolation
from lamplighter.model.job import Delivery
from lamplighter.model.outcome import AbandonCause, Abandoned, Outcome, Released, TimedOut
from lamplighter.observability import events
from lamplighter.secrecy import all_known, redactor
from lamplighter.worker import outcomes
from lamplighter.worker.bench import Bench
from lamplighter.worker.counting import Counts
from lamplighter.worker.link import Convicted, Extended, FromSupervisor, Hurt, Link, Started
from lamplighter.worker.notebook import Notebook
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.shared import Doubt, Shared
from lamplighter.worker.vitals import Vitals

SHORT_TIMEOUT = 2.0
"""Timeouts below this get a timer of their own; the pulse is exact enough for the others."""
WARM_UP = 30.0
"""Time that a process for one job may take to start, beside the job's own."""
AT_ONCE = 0.05
"""A process that was idle gets its job within so many seconds."""
MARGIN = 1.75
"""A run alone is ended by us; only if we cannot, the supervisor ends us this much later."""


class Alone(Protocol):
    """Where handlers run that have a process of their own."""

    @property
    def idle(self) -> int:
        """How many processes wait for a job."""
        ...

    def prepare(self, run: Run) -> None:
        """Have a process ready for this run, and tell when it is; its end is told."""
        ...

    def start(self, run: Run) -> None:
        """Run this handler; its end is told."""
        ...

    def stop(self, run: Run, why: Stop) -> None:
        """Tell it to end; LOST: end it."""
        ...

    def tick(self, now: float) -> None:
        """End what is past its hard end."""
        ...


class Executor:
    """The slots of a child: for handlers beside each other, or for those that run alone."""

    def __init__(
        self,
        *,
        settings: Settings,
        slots: int,
        link: Link[FromSupervisor],
        pulse: Pulse,
        on_end: Callable[[Run, Outcome | None], None],
        on_room: Callable[[], None],
        provided: Mapping[object, object] | None = None,
        middleware: Sequence[Middleware] = (),
        vitals: Vitals | None = None,
    ) -> None:
        self.shared = Bench(slots)
        self.alone = Bench(0)
        self.running: dict[int, Run] = {}
        self.begun = asyncio.Event()
        """Set whenever handlers begin; whoever waits for that clears it."""
        self.tells = False
        """Whether starts are told as events."""
        self.counts: Counts | None = None
        """Counts starts, if anybody wants to know."""
        self.processes: Alone | None = None
        """Where all handlers run, each alone; without it all share this process."""
        self.marking: dict[int, Run] = {}
        """At-most-once runs that have a slot, and whose start is not marked in the store yet."""
        self.mark: Callable[[Sequence[Run]], None] | None = None
        """Has starts marked, and calls `marked`; without it at-most-once jobs start unmarked."""
        self._hard_after = settings.hard_after
        self._link = link
        self._pulse = pulse
        self._on_end = on_end
        self._on_room = on_room
        self._together = Shared(
            threads=slots,
            pulse=pulse,
            on_end=self._end,
            provided=provided or {},
            middleware=middleware,
        )
        self._sentences: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        self._fill_soon = False
        self._vitals = vitals
        self._just_ended: set[str] = set()
        """Types of the handlers that have ended since the vitals were last looked at."""
        self._closed = False
        self._idle: asyncio.Future[None] | None = None

    # ── what is claimed comes in ─────────────────────────────────────────────────────────────

    def offer(self, runs: Sequence[Run]) -> None:
        """Take in claimed jobs and start what there is room for."""
        if self._closed:
            for run in runs:
                self._on_end(run, Released())
            return
        alone = self.processes is not None
        bench = self.alone if alone else self.shared
        for run in runs:
            run.isolated = alone
            if not alone and self.is_sentenced(run.type.name):
                # Its claim was under way when the type was sentenced.
                self._on_end(run, Released())
            else:
                bench.waiting.append(run)
        self.fill()

    def isolate(self, types: Mapping[str, float]) -> None:
        """Run jobs of these types alone for so many seconds."""
        now = runtime.boottime()
        self._sentences.update({name: now + seconds for name, seconds in types.items()})
        for run in [run for run in self.shared.waiting if run.type.name in types]:
            self.shared.waiting.remove(run)
            # For those whose jobs run alone.
            self._on_end(run, Released())

    def is_sentenced(self, name: str) -> bool:
        """Tell whether jobs of a type run alone because one of them killed its process."""
        return bool(self._sentences) and self._sentences.get(name, 0.0) > runtime.boottime()

    def _bench(self, run: Run) -> Bench:
        return self.alone if run.isolated else self.shared

    def fill(self) -> None:
        """Start what there is room for: report all of it, then run it."""
        self._fill_soon = False
        if self._vitals is not None and self._just_ended:
            if self._vitals.touched():
                self.report_harm(self._vitals)
            self._just_ended.clear()
        bench = self.shared if self.processes is None else self.alone
        room = bool(bench.waiting) and bench.free > 0
        if room and self._link.congested:
            runtime.spawn(self._fill_when_drained(), name="fill")
        elif room:
            # All of a child share its process, or all run alone.
            batch = self._marked(self._vouched(bench), bench)
            if batch:
                self._announce(batch)
        self._on_room()

    def _vouched(self, bench: Bench) -> list[Run]:
        """Take runs that no silence of the loop can have cost us; the others are asked about."""
        since, room = self._pulse.check(), bench.free
        waiting = bench.waiting
        batch: list[Run] = []
        while waiting and len(batch) < room:
            if waiting[0].vouched_at < since:
                self._pulse.ask([run.number for run in (*self.shared.waiting, *self.alone.waiting)])
                break
            batch.append(waiting.popleft())
        return batch

    def _marked(self, batch: list[Run], bench: Bench) -> list[Run]:
        """Return the runs that may start now; the others get a slot, and their mark first."""
        once = [run for run in batch if run.claim.job.delivery is _ONCE and not run.claim.started]
        if not once or self.mark is None:
            return batch
        numbers = {run.number for run in once}
        once = [run for run in once if self._is_readable(run)]
        bench.busy += len(once)
        self.marking |= {run.number: run for run in once}
        if self.processes is not None:
            for run in once:
                self.processes.prepare(run)
        elif once:
            self.mark(once)
        return [run for run in batch if run.number not in numbers]

    def _is_readable(self, run: Run) -> bool:
        """Look whether the arguments can fit, before the store is told that the handler is called.

        Only at their names. Values are read by code of the program, which may take for ever or end
        the process: it runs as part of the job, with a hard end, and whoever dies of it is charged.
        """
        try:
            run.type.check_names(run.claim.job.args)
        except InvalidInput as error:
            _conceal(run)
            self._on_end(run, outcomes.unreadable(run, error))
            return False
        return True

    def prepared(self, run: Run) -> None:
        """Have the start of a run marked, now that its process is ready."""
        if run.number in self.marking and self.mark is not None:
            self.mark([run])

    def marked(self, runs: Sequence[Run], lost: Sequence[Run]) -> None:
        """Start runs whose mark is in the store, and drop those whose claims were lost."""
        for run in lost:
            if run.number in self.marking:
                events.emit(events.LEASE_LOST, job_id=run.claim.job.id, verb="record")
                self._drop(run, Stop.LOST)
        ready = [run for run in runs if self._unmark(run)]
        for run in ready:
            run.claim = replace(run.claim, started=True)
        if ready and self.processes is not None:
            # Their processes wait for them. Those look for a standstill before they begin.
            self._announce(ready)
            ready = []
        for run in reversed(ready):
            # As the first: its slot is free. By the same way as all others, since meanwhile the
            # loop may have stood still.
            self._bench(run).waiting.appendleft(run)
        self.fill()

    def _unmark(self, run: Run) -> bool:
        if self.marking.pop(run.number, None) is None:
            return False
        self._bench(run).busy -= 1
        return True

    def _drop(self, run: Run, why: Stop) -> None:
        """End a run that is not marked yet."""
        if self.processes is not None:
            # It tells the end, and keeps the process for another.
            self.processes.stop(run, why)
            return
        self._unmark(run)
        run.stop = why
        self._on_end(run, outcomes.stopped(run))

    def _announce(self, batch: list[Run]) -> None:
        now, running = runtime.boottime(), self.running
        starts: list[tuple[int, float]] = []
        for run in batch:
            self._set_times(run, now)
            running[run.number] = run
            starts.append((run.number, run.hard_end))
        bench = self._bench(batch[0])
        bench.busy += len(batch)
        self.begun.set()
        if bench is self.alone:
            starts = self._warm_up(batch)
        self._link.say(Started(starts, now))
        if self.counts is not None:
            self.counts.started(batch)
        if self._link.flush():
            self._start(batch)
        else:
            runtime.spawn(self._start_when_drained(batch), name="start")

    def _warm_up(self, batch: list[Run]) -> list[tuple[int, float]]:
        """Allow runs whose process has to start the time for that; theirs begins later: `sent`."""
        idle = 0 if self.processes is None else self.processes.idle
        for place, run in enumerate(batch):
            # That of a marked one is ready, and waits for it alone.
            run.cold = place >= idle and not run.claim.started
            if run.cold:
                run.soft_end += WARM_UP
                run.hard_end += WARM_UP
        return [(run.number, run.hard_end + MARGIN) for run in batch]

    def _set_times(self, run: Run, now: float) -> None:
        timeout, stalled_after = run.timeout, run.type.stalled_after
        run.started_at = now
        run.soft_end = now + (timeout if stalled_after is None else min(timeout, stalled_after))
        run.hard_end = run.soft_end + (run.type.hard_after or self._hard_after)

    async def _fill_when_drained(self) -> None:
        await self._link.drained()
        self.fill()

    async def _start_when_drained(self, batch: list[Run]) -> None:
        await self._link.drained()
        self._start(batch)

    def _start(self, batch: list[Run]) -> None:
        beside: list[Run] = []
        for run in batch:
            if run.isolated and run.number not in self.running:
                # It was stopped while the report left.
                continue
            if self.tells:
                _tell_start(run)
            if run.type.secrets or run.claim.job.extras.secrets:
                _conceal(run)
            if run.isolated and self.processes is not None:
                self.processes.start(run)
            else:
                run.make_notes = _make_notes
                self._set_timer(run)
                beside.append(run)
        self._together.start(beside)

    def _set_timer(self, run: Run) -> None:
        if run.timeout < SHORT_TIMEOUT and run.number in self.running:
            run.timer = self._loop.call_later(run.timeout, self._stop, run, Stop.TIMEOUT)

    def sent(self, run: Run) -> None:
        """Note that the process of a run has got it: its time begins."""
        now = runtime.boottime()
        if run.cold or now - run.started_at > AT_ONCE:
            self._set_times(run, now)
            self._link.say(Started([(run.number, run.hard_end + MARGIN)], now))
        self._set_timer(run)

    def ended_alone(self, run: Run, outcome: Outcome | None) -> None:
        """Take in what became of a run in a process of its own."""
        if isinstance(outcome, Abandoned) and outcome.cause is AbandonCause.CRASHED_ALONE:
            if run.redact is not None:
                outcome = replace(outcome, last_words=run.redact(outcome.last_words))
            if run.type.isolation is not Isolation.PROCESS:
                self._link.say(Convicted(run.type.name, outcome.how))
        elif isinstance(outcome, TimedOut) and outcomes.is_stalled(run):
            outcome = TimedOut(outcomes.out_of_time(run, killed="killed" in outcome.error.message))
        self._end(run, outcome)

    def _end(self, run: Run, outcome: Outcome | Doubt | None) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.task = run.timer = None
        if self._vitals is not None:
            if _running_loop() is not self._loop:
                self._vitals.mend_loop()
            self._just_ended.add(run.type.name)
        bench = self._bench(run)
        if self.running.pop(run.number, None) is not None:
            bench.busy -= 1
        else:
            self._unmark(run)
        if not isinstance(outcome, Doubt):
            bench.ended += 1
            self._on_end(run, outcome)
        elif self._closed:
            self._on_end(run, Released())
        else:
            # Back to the others that wait, to be asked about.
            bench.waiting.appendleft(run)
        if not self._fill_soon:
            self._fill_soon = True
            self._loop.call_soon(self.fill)
        if self._idle is not None and not self.running and not self._idle.done():
            self._idle.set_result(None)

    def report_harm(self, vitals: Vitals) -> None:
        """Say what a handler has done to this process, if it has; once is enough."""
        harm = vitals.harm()
        if not harm or self._vitals is None:
            return
        self._vitals = None
        # The one that did it has just ended, or still runs.
        types = self._just_ended or {run.type.name for run in self.running.values()}
        self._link.say(Hurt(tuple(sorted(types)), harm))

    # ── stop ─────────────────────────────────────────────────────────────────────────────────

    def stop(self, numbers: Iterable[int], why: Stop) -> None:
        """Stop these: what waits is dropped at once, what runs is told."""
        wanted = set(numbers)
        for bench in (self.shared, self.alone):
            for run in [run for run in bench.waiting if run.number in wanted]:
                bench.waiting.remove(run)
                run.stop = why
                self._on_end(run, outcomes.stopped(run))
        for run in [run for number, run in self.marking.items() if number in wanted]:
            self._drop(run, why)
        for number in wanted:
            run = self.running.get(number)
            if run is not None:
                self._stop(run, why)

    def confirm(self, asked: Iterable[int], yours: Iterable[int], asked_at: float) -> None:
        """Take the supervisor's word on which waiting claims are still ours."""
        confirmed = set(yours)
        for run in (*self.shared.waiting, *self.alone.waiting):
            if run.number in confirmed:
                run.vouched_at = asked_at
        self.stop(set(asked) - confirmed, Stop.LOST)
        self.fill()

    def tick(self) -> None:
        """Allow more time to runs that made progress, stop those whose time is over."""
        now = runtime.boottime()
        if self._vitals is not None:
            self._vitals.mend_loop()
            self.report_harm(self._vitals)
        self._extend()
        for run in [run for run in self.running.values() if run.soft_end <= now]:
            self._stop(run, Stop.TIMEOUT)
        if self.processes is not None:
            self.processes.tick(now)

    def _extend(self) -> None:
        extended: list[tuple[int, float]] = []
        for run in self.running.values():
            stalled_after = run.type.stalled_after
            if stalled_after is None or run.stop is not None or not run.progressed_at:
                continue
            end = min(run.started_at + run.timeout, run.progressed_at + stalled_after)
            if end > run.soft_end:
                run.soft_end = end
                run.hard_end = end + (run.type.hard_after or self._hard_after)
                extended.append((run.number, run.hard_end + (MARGIN if run.isolated else 0)))
        if extended:
            self._link.say(Extended(extended))

    def unvouched(
        self,
        *,
        kept_since: float,
        believed: float,
        now: float,
        is_excused: Callable[[float, float], bool] = lambda _end, _now: False,
    ) -> list[int]:
        """Numbers of the claims whose lease nobody can have kept for too long.

        ``is_excused`` is asked about a lease that was believed in until an instant.
        """
        return [
            run.number
            for run in (
                *self.running.values(),
                *self.marking.values(),
                *self.shared.waiting,
                *self.alone.waiting,
            )
            if (end := max(run.vouched_at, kept_since) + believed) <= now
            and not is_excused(end, now)
        ]

    def close(self) -> None:
        """Start nothing any more; give back what waits."""
        self._closed = True
        for bench in (self.shared, self.alone):
            waiting, bench.waiting = bench.waiting, deque[Run]()
            for run in waiting:
                self._on_end(run, Released())
        for run in list(self.marking.values()):
            self._drop(run, Stop.DRAIN)

    def stop_all(self) -> None:
        """Stop every handler because the worker ends."""
        for run in list(self.running.values()):
            self._stop(run, Stop.DRAIN)

    async def idle(self) -> None:
        """Wait until no handler runs."""
        while self.running:
            self._idle = self._loop.create_future()
            await self._idle

    def _stop(self, run: Run, why: Stop) -> None:
        if run.number not in self.running or run.stop in {why, Stop.LOST}:
            return
        # A first reason stands, but for the one that forbids to write.
        told, run.stop = run.stop is not None, run.stop or why
        if why is Stop.LOST:
            run.stop = why
        if run.isolated and self.processes is not None:
            if not told or why is Stop.LOST:
                self.processes.stop(run, run.stop)
        elif run.task is not None and run.entered and not told:
            run.task.cancel()


_make_notes = Notebook.of
_running_loop = asyncio._get_running_loop  # noqa: SLF001 - the one that raises nothing
_ONCE = Delivery.AT_MOST_ONCE


def _conceal(run: Run) -> None:
    """Attach the function that hides the values of its secret arguments."""
    run.claim = claim = all_known(run.claim, run.type.secrets)
    run.redact = redactor(claim.job.args, claim.job.extras.secrets)


def _tell_start(run: Run) -> None:
    job = run.claim.job
    events.emit(
        events.JOB_STARTED,
        job_id=job.id,
        type=job.type,
        tenant=job.tenant,
        queue=job.queue,
        attempt=job.attempt + 1,
    )
