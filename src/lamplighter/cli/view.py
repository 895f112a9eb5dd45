"""How `lamplighter dev` shows what happens: a line per event, or a board in the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from lamplighter import runtime
from lamplighter.cli import output
from lamplighter.cli.board import SHOWN, Board, Child, Facts, Running
from lamplighter.cli.capture import captured
from lamplighter.cli.feed import Printer
from lamplighter.cli.keys import Press, pressed
from lamplighter.cli.toll import Toll
from lamplighter.model.errors import StoreError
from lamplighter.port.store import Engine
from lamplighter.service import Service
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

FRAME = 0.25
"""Seconds between two pictures of the view."""
LOOK = 2
"""Every so many pictures the store is asked."""

_KEYS = "k kill -9 a child · r reload · p pause the view · q quit"
_LINK = "c new link · "
_PAUSED = "the view is paused, the work is not · p to go on · q quit"


class View(Protocol):
    """Shows what happens."""

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in an event."""
        ...

    def say(self, text: str, *, failure: bool = False) -> None:
        """Tell something that is no event."""
        ...

    def fail(self, text: str, details: str) -> None:
        """Tell of an error, in a line and at length."""
        ...

    def shown(
        self, on_closed: Callable[[], None], keys: Mapping[str, Press]
    ) -> AbstractContextManager[None]:
        """Show it for the time of a ``with`` block; call back when nobody looks any more."""
        ...

    def invite(self, address: str) -> None:
        """Tell where the console is."""
        ...

    def services(self, engine: Engine, supervisor: Supervisor) -> list[Service]:
        """Return what has to run for it."""
        ...


class PlainView:
    """One line per event."""

    def __init__(self, title: str, printer: Printer) -> None:
        self._title = title
        self._printer = printer

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Print it."""
        self._printer.on_event(name, fields)

    def say(self, text: str, *, failure: bool = False) -> None:
        """Print it where it does not disturb a program that reads the events."""
        self._printer.tell(text, err=True)

    def fail(self, text: str, details: str) -> None:
        """Print both."""
        self.say(f"error: {text}\n\n{details}")

    def invite(self, address: str) -> None:
        """Print it."""
        self.say(f"the console is at {address}")

    @contextmanager
    def shown(self, on_closed: Callable[[], None], keys: Mapping[str, Press]) -> Generator[None]:
        """Name what runs. Without a terminal there are no keys."""
        self._printer.on_closed = on_closed
        self.say(f"{self._title}; Ctrl-C to stop")
        yield

    def services(self, engine: Engine, supervisor: Supervisor) -> list[Service]:
        """Nothing has to run: lines come with the events."""
        return []


class LiveView:
    """The board, drawn anew several times a second."""

    def __init__(self, board: Board, toll: Toll) -> None:
        self._board = board
        self._toll = toll
        self._live: Live | None = None
        self._console: Console | None = None
        self._failures: list[str] = []
        self._keys = board.keys
        self._paused = False

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Note it on the board."""
        self._board.on_event(name, fields)

    def say(self, text: str, *, failure: bool = False) -> None:
        """Write it among the events."""
        self._board.say("note", text, "bold red" if failure else "bold", failure=failure)

    def fail(self, text: str, details: str) -> None:
        """Write the line among the failures, and the details when the terminal is free again."""
        self.say(text, failure=True)
        self._failures.append(f"error: {text}\n\n{details}")

    def invite(self, address: str) -> None:
        """Show it for as long as the board is."""
        self._board.console = address

    @contextmanager
    def shown(self, on_closed: Callable[[], None], keys: Mapping[str, Press]) -> Generator[None]:
        """Take over the terminal. When it goes away, a signal tells."""
        from rich.live import Live

        with captured(lambda line: self._board.say("printed", line)) as terminal:
            self._console = console = output.console(terminal)
            with (
                pressed({**keys, "p": self._pause}) as has_keys,
                Live(
                    self._board.draw(),
                    console=console,
                    screen=True,
                    auto_refresh=False,
                    redirect_stdout=False,
                    redirect_stderr=False,
                ) as live,
            ):
                self._live = live
                known = f"{_LINK}{_KEYS}" if "c" in keys else _KEYS
                self._keys = self._board.keys = known if has_keys else self._keys
                try:
                    yield
                finally:
                    self._live = None
        self._sum_up()

    def services(self, engine: Engine, supervisor: Supervisor) -> list[Service]:
        """Return the painter."""
        return [Painter(engine, supervisor, self._board, self._refresh)]

    def _sum_up(self) -> None:
        counts = self._board.facts.counts
        toll = f"; {self._toll}" if self._toll.killed else ""
        output.note(
            f"stopped: {counts.get('succeeded', 0)} succeeded, {counts.get('dead', 0)} dead{toll}; "
            "`lamplighter jobs list` and `lamplighter dlq list` show more"
        )
        for failure in self._failures:
            output.note(failure)

    def _pause(self) -> None:
        self._paused = not self._paused
        self._board.keys = _PAUSED if self._paused else self._keys
        self._draw()

    def _refresh(self) -> None:
        if not self._paused:
            self._draw()

    def _draw(self) -> None:
        if self._live is not None and self._console is not None:
            # The view's own terminal: our standard streams lead elsewhere by now.
            with suppress(OSError):
                self._console.size = os.get_terminal_size(self._console.file.fileno())
            self._board.toll = str(self._toll)
            self._live.update(self._board.draw(self._console.size.height), refresh=True)


class Painter(Service):
    """Looks at the store and at the worker now and then, and draws."""

    name = "view"

    def __init__(
        self, engine: Engine, supervisor: Supervisor, board: Board, refresh: Callable[[], None]
    ) -> None:
        super().__init__()
        self._inspector = engine.inspector
        self._supervisor = supervisor
        self._board = board
        self._refresh = refresh
        self._frames = 0

    async def step(self) -> float:
        """Draw one picture."""
        if self._frames % LOOK == 0:
            with suppress(StoreError):
                self._board.facts = await self._look()
        self._frames += 1
        self._refresh()
        return FRAME

    async def _look(self) -> Facts:
        inspector = self._inspector
        return Facts(
            queues=await inspector.queues(),
            workers=[w for w in await inspector.workers() if w.lives],
            counts=await inspector.counts(),
            children=[_child(child) for child in self._supervisor.children],
            running=await self._running(),
        )

    async def _running(self) -> list[Running]:
        """Return the jobs that run longest, as our own children tell, with what the store knows."""
        now = runtime.boottime()
        started = sorted(
            (entry.started_at, entry.id)
            for child in self._supervisor.children
            for entry in child.ledger.entries.values()
            if entry.hard_end is not None and not child.dead
        )
        found: list[Running] = []
        for started_at, job_id in started[:SHOWN]:
            record = await self._inspector.job(job_id)
            if record is not None:
                found.append(
                    Running(
                        id=job_id,
                        type=record.job.type,
                        tenant=record.job.tenant,
                        attempt=record.job.attempt + 1,
                        seconds=now - started_at,
                        progress=record.progress,
                    )
                )
        return found


def _child(child: ChildProcess) -> Child:
    jobs = [entry.id for entry in child.ledger.entries.values() if entry.hard_end is not None]
    return Child(pid=child.pid, state=state_of(child), jobs=jobs)


def state_of(child: ChildProcess) -> str:
    """Say how a child process is, in a word."""
    if child.dead:
        return "dead"
    if child.draining:
        return "ending"
    return "ready" if child.ready else "starting"
