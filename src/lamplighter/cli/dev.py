"""`lamplighter dev`: a program at work in one command, with its stories."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lamplighter import coordinator, runtime
from lamplighter.app import App, Story
from lamplighter.cli import extra, output, store
from lamplighter.cli.board import Board
from lamplighter.cli.feed import Printer, short_cause
from lamplighter.cli.program import declarer, load_worker_app
from lamplighter.cli.reloader import Reloader, folders_of
from lamplighter.cli.toll import Auditor, Kill, Toll
from lamplighter.cli.view import LiveView, PlainView, View, state_of
from lamplighter.cli.worker import process_options, process_settings
from lamplighter.config import Settings
from lamplighter.connect import store_name
from lamplighter.fleet import Fleet
from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.service import Service
from lamplighter.worker import queues as queue_list
from lamplighter.worker.supervisor import Supervisor

if TYPE_CHECKING:
    from lamplighter.cli.site import Site
    from lamplighter.server.routes.dev import Dev

FAILED = 1
DAY = 86_400.0


@click.command(short_help="Run a program's jobs, with a view and the console, until Ctrl-C.")
@click.argument("spec", metavar="MODULE:APP")
@click.option("--speed", type=float, help="Divide all delays and retry pauses by this.")
@process_options
@click.option("--no-reload", is_flag=True, help="Do not reload the program when its files change.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port of the console.  [default: 8080, or the next that is free]",
)
@click.option("--no-serve", is_flag=True, help="Do without the console and the HTTP API.")
@click.option("--open", "show", is_flag=True, help="Open the console in a browser.")
@store.store_options
def dev(
    *,
    spec: str,
    speed: float | None,
    queues: str | None,
    url: str | None,
    no_reload: bool,
    port: int | None,
    no_serve: bool,
    show: bool,
    as_json: bool,
    **processes: Any,
) -> None:
    """Run a program's jobs and its stories in one command, until Ctrl-C.

    In a terminal there is a view of queues, processes, running jobs and events, and keys: k kills
    a child, r reloads, p pauses the view, c makes a new link to the console, q quits. Elsewhere,
    and with --json, one line per event.

    The console shows the same in a browser, with a button that kills a child; only this machine
    can reach it. The link that is printed logs one browser in, within 15 minutes; `lamplighter
    token login` makes another.

    When a Python file of the program changes, jobs run the new code from then on. Stories, the
    functions marked with `@app.on_dev`, are not reloaded.
    """
    output.never_block(as_json=as_json)
    asked = None if queues is None else queue_list.parse(queues)
    app = load_worker_app(spec, speed=speed, url=url, **process_settings(**processes))
    if _is_live(as_json=as_json):
        # The board has its own place for failures, and no room for tracebacks.
        app.configure(dataclasses.replace(app.settings, log_failures=0))
    toll = Toll()
    view = _view(spec, app.settings, toll, as_json=as_json)
    development = Development(app, spec, view, toll, asked, reload=not no_reload)
    if not no_serve:
        development.serve(port, show=show)
    store.run(development.run())
    if development.failed:
        sys.exit(FAILED)


def _view(spec: str, settings: Settings, toll: Toll, *, as_json: bool) -> View:
    about = store_name(settings.url)
    if settings.speed != 1:
        day = output.span(DAY / settings.speed)
        about += f", at speed {settings.speed:g}: a day passes in {day}"
    if _is_live(as_json=as_json):
        return LiveView(Board(f"lamplighter dev {spec}", about, settings.speed), toll)
    return PlainView(f"{spec} on {about}", Printer(speed=settings.speed, as_json=as_json))


def _is_live(*, as_json: bool) -> bool:
    return sys.stdout.isatty() and not as_json


class Development:
    """A worker, and beside it the stories that give it something to do."""

    def __init__(
        self,
        app: App,
        spec: str,
        view: View,
        toll: Toll,
        queues: queue_list.QueueStride | None,
        *,
        reload: bool = True,
    ) -> None:
        self.failed = False
        self._app = app
        self._spec = spec
        self._view = view
        self._toll = toll
        toll.on_recovered = self._recovered
        self._site: Site | None = None
        self._show_site = False
        self._stories: list[asyncio.Task[None]] = []
        self._stopping = False
        self._watched = folders_of(spec.partition(":")[0]) if reload else []
        self._renewal: Renewal | None = None
        self._make_supervisor = lambda: Supervisor(
            spec,
            app.settings,
            queues=queues,
            services=self._services,
            on_event=self._on_event,
        )

    def serve(self, port: int | None, *, show: bool) -> None:
        """Serve the console too, if what it needs is installed; bind its address now."""
        try:
            with extra.server():
                from lamplighter.cli.site import Site
        except InvalidOption as error:
            output.note(f"there is no console: {error.cause}; {error.hint}")
            return
        self._site = Site(self._app, self, port)
        self._show_site = show

    async def run(self) -> None:
        """Live until the first signal; the second one hurries."""
        self._supervisor = supervisor = self._make_supervisor()
        await self._app.open()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        keys = {"k": self._kill, "r": lambda: self._reload(()), "q": self._stop}
        if self._site is not None:
            keys["c"] = self._invite
        try:
            with self._view.shown(self._nobody_looks, keys):
                await self._open_site()
                self._stories = [
                    runtime.spawn(self._tell(story), name="story") for story in self._app.stories
                ]
                await supervisor.run()
        finally:
            await self._end_stories()
            if self._site is not None:
                await self._site.stop()
            await self._app.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _services(self, engine: Engine, settings: Settings, fleet: Fleet) -> list[Service]:
        services = [
            *coordinator.services(engine, settings, fleet),
            declarer(engine, self._app, fleet),
            Auditor(engine.inspector, self._toll),
            *self._view.services(engine, self._supervisor),
        ]
        if self._watched:
            services.append(Reloader(self._watched, self._reload))
        return services

    async def _open_site(self) -> None:
        if self._site is None:
            return
        await self._site.start(self._site_broke)
        self._invite()
        if self._show_site:
            await self._site.show()

    def _invite(self) -> None:
        """Show a link to the console; each is good for one login."""
        if self._site is not None:
            self._view.invite(self._site.link())

    def _site_broke(self, error: BaseException) -> None:
        self._view.say(f"the console is not served any more: {error!r}", failure=True)

    def _on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        self._toll.on_event(name, fields)
        self._view.on_event(name, fields)
        if self._renewal is not None:
            self._renewal.on_event(name, fields)
            if self._renewal.answer:
                self._view.say(self._renewal.answer, failure=self._renewal.failed)
                self._renewal = None

    # ── what can be asked of it ──────────────────────────────────────────────────────────────

    def facts(self) -> Dev:
        """Say how the worker is, for the console."""
        from lamplighter.server.routes.dev import Dev, DevChild

        toll = self._toll
        return Dev(
            program=self._spec,
            speed=self._app.settings.speed,
            children=[
                DevChild(pid=child.pid, state=state_of(child), running=child.ledger.running())
                for child in self._supervisor.children
            ],
            killed=toll.killed,
            lost=len(toll.lost),
            recovering=toll.pending,
            recovered_seconds=toll.recovered_in,
        )

    def kill(self) -> int | None:
        """Kill a child without warning, and tell; gives its pid."""
        if self._stopping:
            return None
        kill = self._toll.kill(self._supervisor)
        if kill is None:
            self._view.say("no child is ready to be killed")
            return None
        held = counted(len(kill.held), "job")
        self._view.say(f"killed pid {kill.pid} with -9, which held {held}")
        return kill.pid

    def _kill(self) -> None:
        self.kill()

    def _recovered(self, kill: Kill, seconds: float) -> None:
        span = output.span(seconds)
        self._view.say(f"all jobs of pid {kill.pid} are in safe hands again after {span}")

    def _reload(self, changed: Sequence[str]) -> None:
        if self._stopping:
            return
        self._supervisor.reload()
        old = {
            child.worker
            for child in self._supervisor.children
            # Successors that are not ready are no loss; nobody tells of their end.
            if not child.draining and not child.dead and child.replaces is None
        }
        self._renewal = Renewal(old, changed)

    def _stop(self) -> None:
        first, self._stopping = not self._stopping, True
        for story in self._stories:
            story.cancel()
        self._supervisor.drain()
        if first:
            # At last: telling it may fail.
            grace = output.span(self._app.settings.grace)
            self._view.say(f"stopping: running jobs get {grace}; Ctrl-C again to hurry")

    def _nobody_looks(self) -> None:
        if not self._stopping:
            self.failed = True
            self._stop()

    # ── stories ──────────────────────────────────────────────────────────────────────────────

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


class Renewal:
    """Follows a reload until every old child has been replaced, or a new one cannot start."""

    def __init__(self, old: set[str], changed: Sequence[str]) -> None:
        self.answer = ""
        """What there is to say, once it is over."""
        self.failed = False
        self._old = old
        self._why = f"{_listed(changed)} changed" if changed else "as you asked"

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in what becomes of children."""
        if name not in {events.CHILD_RETIRED, events.CHILD_DIED}:
            return
        if fields["worker"] in self._old:
            self._old.remove(fields["worker"])
            if not self._old:
                self.answer = f"reloaded: {self._why}"
        elif name == events.CHILD_DIED and fields.get("error"):
            self.failed = True
            cause = short_cause(str(fields["error"]))
            self.answer = f"not reloaded, the old code runs on: {cause}"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more files"
