"""The view of `lamplighter dev` in a terminal: queues, processes, jobs, and what happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lamplighter import runtime
from lamplighter.cli import output
from lamplighter.cli.feed import Feed, Line
from lamplighter.model.journal import Progress
from lamplighter.observability import events
from lamplighter.port.values import QueueInfo, WorkerInfo

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.layout import Layout
    from rich.table import Table
    from rich.text import Text

WINDOW = 10.0
"""Seconds over which the throughput is counted."""
SHOWN = 12
"""So many running jobs are shown at most."""
_KEPT = 200
_BAR = 12
_NARROW = 8
_LOW = 20
_STARTED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job whose handler runs."""

    id: str
    type: str
    tenant: str
    attempt: int
    seconds: float
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A child process, and the jobs it runs."""

    pid: int
    state: str
    jobs: Sequence[str] = ()


@dataclass(slots=True)
class Facts:
    """What the store and the worker say, as of the last look."""

    queues: Sequence[QueueInfo] = ()
    workers: Sequence[WorkerInfo] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    children: Sequence[Child] = ()
    running: Sequence[Running] = ()
    """Those that run longest."""


class Board:
    """Remembers the last events and draws them with the facts."""

    def __init__(self, title: str, subtitle: str, speed: float) -> None:
        self.facts = Facts()
        self.keys = "Ctrl-C to stop"
        """What can be pressed, or why nothing can."""
        self.toll = ""
        self.console = ""
        """Where the console is."""
        self._title = title
        self._subtitle = subtitle
        self._feed = Feed(speed)
        self._recent: deque[Line] = deque(maxlen=_KEPT)
        self._failures: deque[Line] = deque(maxlen=_KEPT)
        self._types: dict[str, str] = {}
        self._settled: deque[float] = deque()

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in an event."""
        if name == events.JOB_STARTED:
            if len(self._types) < _STARTED:
                self._types[fields["job_id"]] = fields["type"]
        elif name == events.JOB_SETTLED:
            self._settled.append(runtime.monotonic())
            self._types.pop(fields["job_id"], None)
        line = self._feed.line(name, fields)
        if line is None:
            return
        self._recent.append(line)
        if line.failure:
            self._failures.append(line)

    def say(self, word: str, text: str, style: str = "", *, failure: bool = False) -> None:
        """Show a line that is no event."""
        line = Line(runtime.now_ms(), word, output.printable(text), style, failure)
        self._recent.append(line)
        if failure:
            self._failures.append(line)

    def throughput(self) -> float:
        """Jobs settled per second, lately."""
        since = runtime.monotonic() - WINDOW
        while self._settled and self._settled[0] < since:
            self._settled.popleft()
        return len(self._settled) / WINDOW

    # ── draw ─────────────────────────────────────────────────────────────────────────────────

    def draw(self, height: int = 40) -> Layout:
        """Return the whole view, fitted to a terminal of so many lines."""
        from rich.layout import Layout

        facts, third = self.facts, max(4, (height - 3) // 3)
        tables = max(len(facts.queues), len(facts.children) + len(facts.workers)) + 3
        top = Layout(name="top", size=max(4, min(12, tables, third)))
        processes = _panel("workers", self._processes())
        top.split_row(Layout(_panel("queues", self._queues()), ratio=1), Layout(processes, ratio=1))
        rows = min(len(facts.running) + 3, third)
        running = _panel("running jobs", self._running(rows - 3))
        failures = Layout(
            _panel("failures", _Lines(self._failures)),
            size=max(3, min(8, height // 6)),
            visible=height >= _LOW,  # they stand among what happens, too
        )
        root = Layout()
        root.split_column(
            Layout(self._header(), size=1),
            top,
            Layout(running, size=max(4, rows)),
            Layout(_panel("what is happening", _Lines(self._recent)), minimum_size=3),
            failures,
            Layout(self._counts(), size=1),
            Layout(
                output.text(f"console  {self.console}", "bold"),
                size=1,
                visible=bool(self.console),
            ),
            Layout(output.text(self.keys, "dim"), size=1),
        )
        return root

    def _header(self) -> Text:
        from rich.text import Text

        return Text.assemble((self._title, "bold"), ("  " + self._subtitle, "dim"), no_wrap=True)

    def _counts(self) -> Text:
        from rich.text import Text

        counts = self.facts.counts
        done, dead = counts.get("succeeded", 0), counts.get("dead", 0)
        return Text.assemble(
            (f"{self.throughput():.1f} jobs/s", "bold"),
            f"  {output.count(done)} succeeded  ",
            (f"{output.count(dead)} dead", "red" if dead else ""),
            (f"  {self.toll}", "bold green" if "lost 0" in self.toll else "bold red"),
            no_wrap=True,
        )

    def _queues(self) -> Table:
        table = _table("queue", ">ready", ">scheduled", ">running")
        for queue in self.facts.queues:
            table.add_row(
                output.text(queue.name if queue.held is None else f"{queue.name} (held)"),
                output.text(output.count(queue.ready), "cyan"),
                output.text(output.count(queue.scheduled), "blue"),
                output.text(output.count(queue.running), "yellow"),
            )
        return table

    def _processes(self) -> Table:
        table = _table("process", ">pid", "runs")
        for worker in self.facts.workers:
            style = output.STYLES.get(worker.state, "")
            table.add_row(
                output.text(f"worker, {worker.state}", style),
                str(worker.pid),
                f"{worker.running} of {worker.slots}",
            )
        for child in self.facts.children:
            table.add_row(
                output.text(f"child, {child.state}", "dim"), str(child.pid), self._runs(child.jobs)
            )
        return table

    def _runs(self, jobs: Sequence[str]) -> Text:
        """Say how many jobs of which types."""
        counted: dict[str, int] = {}
        for job_id in jobs:
            name = self._types.get(job_id, "?")
            counted[name] = counted.get(name, 0) + 1
        often = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
        return output.text(", ".join(n if many == 1 else f"{many} × {n}" for n, many in often))

    def _running(self, room: int) -> Table:
        table = _table("job", "tenant", ">try", "progress", ">for", "note")
        for place, width in ((0, 2 * _NARROW), (3, _BAR + 6), (4, _NARROW)):
            # In a narrow terminal the others give way.
            table.columns[place].min_width = width
        for job in self.facts.running[: max(1, room)]:
            table.add_row(
                output.text(job.type),
                output.text(job.tenant),
                str(job.attempt),
                bar(job.progress),
                output.span(job.seconds),
                output.text("" if job.progress is None else job.progress.note, "dim"),
            )
        return table


def bar(progress: Progress | None) -> Text:
    """Draw how far a job has come; what has no known end is a number alone."""
    from rich.text import Text

    if progress is None:
        return Text("")
    if not progress.total or progress.total <= 0:
        return Text(f"{progress.done:g}", "yellow")
    part = min(1.0, max(0.0, progress.done / progress.total))
    full = int(part * _BAR)
    return Text.assemble(
        ("█" * full, "green"), ("░" * (_BAR - full), "dim"), f" {int(part * 100):>3} %"
    )


class _Lines:
    """As many of the last lines as there is room for."""

    def __init__(self, lines: Sequence[Line] | deque[Line]) -> None:
        self._lines = list(lines)

    def __rich_console__(self, console: Any, options: Any) -> Any:
        for line in self._lines[-(options.height or len(self._lines) or 1) :]:
            yield output.line_text(line.at_ms, line.word, line.text, line.style)


def _panel(title: str, inside: Any) -> RenderableType:
    from rich.panel import Panel

    return Panel(inside, title=title, title_align="left", border_style="dim", padding=(0, 1))


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, expand=True, header_style="bold")
    for column in columns:
        justify = "right" if column.startswith(">") else "left"
        table.add_column(column.lstrip(">"), justify=justify, no_wrap=True)
    return table
