"""`lamplighter dev`: a program at work in one command, with its stories."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import click

from lamplighter import coordinator, runtime
from lamplighter.app import App, Story
from lamplighter.cli import output, store
from lamplighter.cli.board import Board, Facts
from lamplighter.cli.capture import captured
from lamplighter.cli.feed import Printer
from lamplighter.cli.program import load_worker_app
from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.port.store import Engine
from lamplighter.service import Service
from lamplighter.worker import queues as queue_list
from lamplighter.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console
    from rich.live import Live

FAILED = 1
DAY = 86_400.0
FRAME = 0.25
"""Seconds between two pictures of the view."""
LOOK = 4
"""Every so many pictures the store is asked."""


class View(Protocol):
    """Shows what happens."""

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in an event."""
        ...

    def say(self, text: str) -> None:
        """Tell something that is no event."""
        ...

    def fail(self, text: str, details: str) -> None:
        """Tell of an error, in a line and at length."""
        ...

    def shown(self, on_closed: Callable[[], None]) -> AbstractContextManager[None]:
        """Show it for the time of a ``with`` block; call back when nobody looks any more."""
        ...

    def services(self, engine: Engine) -> list[Service]:
        """Give what has to run for it."""
        ...


@click.command()
@click.argument("spec", metavar="MODULE:APP")
@click.option("--speed", type=float, help="Divide all delays and retry pauses by this.")
@click.option("--queues", metavar="LIST", help="`a,b`: a before b; `a=3,b=1`: by weight.")
@click.option("--children", type=int, help="Child processes.  [default: cores, at most 4]")
@store.store_options
def dev(
    spec: str,
    speed: float | None,
    queues: str | None,
    children: int | None,
    url: str | None,
    *,
    as_json: bool,
) -> None:
    """Run a program's jobs and its stories in one command, until Ctrl-C.

    In a terminal there is a view of queues, workers and events; elsewhere, and with --json, one
    line per event.
    """
    asked = None if queues is None else queue_list.parse(queues)
    app = load_worker_app(spec, speed=speed, children=children, url=url)
    view = _view(spec, app.settings, as_json=as_json)
    development = Development(app, spec, view, asked)
    store.run(development.run())
    if development.failed:
        sys.exit(FAILED)


def _view(spec: str, settings: Settings, *, as_json: bool) -> View:
    about = settings.url
    if settings.speed != 1:
        day = output.span(DAY / settings.speed)
        about += f", at speed {settings.speed:g}: a day passes in {day}"
    if sys.stdout.isatty() and not as_json:
        return LiveView(Board(f"lamplighter dev {spec}", about, settings.speed))
    return PlainView(f"{spec} on {about}", Printer(speed=settings.speed, as_json=as_json))


class Development:
    """A worker, and beside it the stories that give it something to do."""

    def __init__(
        self, app: App, spec: str, view: View, queues: queue_list.QueueStride | None
    ) -> None:
        self.failed = False
        self._app = app
        self._view = view
        self._stories: list[asyncio.Task[None]] = []
        self._stopping = False
        self._make_supervisor = lambda: Supervisor(
            spec,
            app.settings,
            queues=queues,
            services=self._services,
            on_event=view.on_event,
        )

    async def run(self) -> None:
        """Live until the first signal; the second one hurries."""
        supervisor = self._make_supervisor()
        await self._app.open()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, supervisor)
        try:
            with self._view.shown(lambda: self._nobody_looks(supervisor)):
                self._stories = [
                    runtime.spawn(self._tell(story), name="story") for story in self._app.stories
                ]
                await supervisor.run()
        finally:
            await self._end_stories()
            await self._app.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _services(self, engine: Engine, settings: Settings) -> list[Service]:
        return [*coordinator.services(engine, settings), *self._view.services(engine)]

    def _stop(self, supervisor: Supervisor) -> None:
        first, self._stopping = not self._stopping, True
        for story in self._stories:
            story.cancel()
        supervisor.drain()
        if first:
            # At last: telling it may fail.
            grace = output.span(self._app.settings.grace)
            self._view.say(f"stopping: running jobs get {grace}; Ctrl-C again to hurry")

    def _nobody_looks(self, supervisor: Supervisor) -> None:
        if not self._stopping:
            self.failed = True
            self._stop(supervisor)

    async def _tell(self, story: Story) -> None:
        name = getattr(story, "__name__", "story")
        try:
            await story(self._app)
        except Exception as error:  # noqa: BLE001 - a story is user code
            if self._stopping:
                return
            self.failed = True
            self._view.fail(f"the story {name} failed: {error!r}", traceback.format_exc())

    async def _end_stories(self) -> None:
        for story in self._stories:
            story.cancel()
        await asyncio.gather(*self._stories, return_exceptions=True)


class PlainView:
    """One line per event."""

    def __init__(self, title: str, printer: Printer) -> None:
        self._title = title
        self._printer = printer

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Print it."""
        self._printer.on_event(name, fields)

    def say(self, text: str) -> None:
        """Print it where it does not disturb a program that reads the events."""
        self._printer.tell(text, err=True)

    def fail(self, text: str, details: str) -> None:
        """Print both."""
        self.say(f"error: {text}\n\n{details}")

    @contextmanager
    def shown(self, on_closed: Callable[[], None]) -> Generator[None]:
        """Name what runs."""
        self._printer.on_closed = on_closed
        self.say(f"{self._title}; Ctrl-C to stop")
        yield

    def services(self, engine: Engine) -> list[Service]:
        """Nothing has to run: lines come with the events."""
        return []


class LiveView:
    """The board, drawn anew several times a second."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._live: Live | None = None
        self._console: Console | None = None
        self._failures: list[str] = []

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Note it on the board."""
        self._board.on_event(name, fields)

    def say(self, text: str) -> None:
        """Write it under the board."""
        self._board.footer = text
        self._board.say("note", text, "bold")

    def fail(self, text: str, details: str) -> None:
        """Write the line under the board, and the details when the terminal is free again."""
        self.say(text)
        self._failures.append(f"error: {text}\n\n{details}")

    @contextmanager
    def shown(self, on_closed: Callable[[], None]) -> Generator[None]:
        """Take over the terminal. When it goes away, a signal tells."""
        from rich.live import Live

        with captured(lambda line: self._board.say("printed", line)) as terminal:
            self._console = console = output.console(terminal)
            with Live(
                self._board.draw(),
                console=console,
                screen=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            ) as live:
                self._live = live
                try:
                    yield
                finally:
                    self._live = None
        counts = self._board.facts.counts
        output.note(
            f"stopped: {counts.get('succeeded', 0)} succeeded, {counts.get('dead', 0)} dead; "
            "`lamplighter jobs list` and `lamplighter dlq list` show more"
        )
        for failure in self._failures:
            output.note(failure)

    def services(self, engine: Engine) -> list[Service]:
        """Give the painter."""
        return [Painter(engine, self._board, self._refresh)]

    def _refresh(self) -> None:
        if self._live is not None and self._console is not None:
            # The view's own terminal: our standard streams lead elsewhere by now.
            with suppress(OSError):
                self._console.size = os.get_terminal_size(self._console.file.fileno())
            self._live.update(self._board.draw(), refresh=True)


class Painter(Service):
    """Looks at the store now and then, and draws."""

    name = "view"

    def __init__(self, engine: Engine, board: Board, refresh: Any) -> None:
        super().__init__()
        self._engine = engine
        self._board = board
        self._refresh = refresh
        self._frames = 0

    async def step(self) -> float:
        """Draw one picture."""
        if self._frames % LOOK == 0:
            with suppress(StoreError):
                inspector = self._engine.inspector
                self._board.facts = Facts(
                    queues=await inspector.queues(),
                    workers=[w for w in await inspector.workers() if w.state != "dead"],
                    counts=await inspector.counts(),
                )
        self._frames += 1
        self._refresh()
        return FRAME
