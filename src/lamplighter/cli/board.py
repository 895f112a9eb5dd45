"""The view of `lamplighter dev` in a terminal: queues, workers, and what is happening."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lamplighter import runtime
from lamplighter.cli import output
from lamplighter.cli.feed import Feed, Line
from lamplighter.observability import events
from lamplighter.port.values import QueueInfo, WorkerInfo

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.layout import Layout
    from rich.table import Table

WINDOW = 10.0
"""Seconds over which the throughput is counted."""
_KEPT = 200
_FAILURES = 8


@dataclass(slots=True)
class Facts:
    """What the store says, as of the last look."""

    queues: Sequence[QueueInfo] = ()
    workers: Sequence[WorkerInfo] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


class Board:
    """Remembers the last events and draws them with the facts."""

    def __init__(self, title: str, subtitle: str, speed: float) -> None:
        self.facts = Facts()
        self.footer = "Ctrl-C to stop"
        self._title = title
        self._subtitle = subtitle
        self._feed = Feed(speed)
        self._recent: deque[Line] = deque(maxlen=_KEPT)
        self._failures: deque[Line] = deque(maxlen=_KEPT)
        self._children: dict[str, int] = {}
        self._settled: deque[float] = deque()

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in an event."""
        if name == events.JOB_SETTLED:
            self._settled.append(runtime.monotonic())
        elif name == events.CHILD_STARTED:
            self._children[fields["worker"]] = fields["pid"]
        elif name == events.CHILD_DIED:
            self._children.pop(fields["worker"], None)
        line = self._feed.line(name, fields)
        if line is None:
            return
        self._recent.append(line)
        if line.failure:
            self._failures.append(line)

    def say(self, word: str, text: str, style: str = "") -> None:
        """Show a line that is no event."""
        self._recent.append(Line(runtime.now_ms(), word, output.printable(text), style))

    def throughput(self) -> float:
        """Jobs settled per second, lately."""
        since = runtime.monotonic() - WINDOW
        while self._settled and self._settled[0] < since:
            self._settled.popleft()
        return len(self._settled) / WINDOW

    # ── draw ─────────────────────────────────────────────────────────────────────────────────

    def draw(self) -> Layout:
        """Give the whole view, fitted to the terminal."""
        from rich.layout import Layout

        tables = max(len(self.facts.queues), len(self._children) + len(self.facts.workers)) + 3
        top = Layout(name="top", size=max(5, min(12, tables)))
        top.split_row(Layout(_panel("queues", self._queues()), ratio=3), Layout(self._side()))
        root = Layout()
        root.split_column(
            Layout(self._header(), size=1),
            top,
            Layout(_panel("what is happening", _Lines(self._recent)), minimum_size=4),
            Layout(_panel("failures", _Lines(self._failures)), size=_FAILURES),
            Layout(self._footer(), size=1),
        )
        root["top"].children[1].ratio = 2
        return root

    def _header(self) -> RenderableType:
        from rich.text import Text

        return Text.assemble((self._title, "bold"), ("  " + self._subtitle, "dim"), no_wrap=True)

    def _footer(self) -> RenderableType:
        from rich.text import Text

        counts = self.facts.counts
        done, dead = counts.get("succeeded", 0), counts.get("dead", 0)
        return Text.assemble(
            (f"{self.throughput():.1f} jobs/s", "bold"),
            f"  {output.count(done)} succeeded  ",
            (f"{output.count(dead)} dead", "red" if dead else ""),
            (f"  {self.footer}", "dim"),
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

    def _side(self) -> RenderableType:
        table = _table("process", ">pid", ">running")
        for worker in self.facts.workers:
            style = output.STYLES.get(worker.state, "")
            table.add_row(
                output.text(f"worker, {worker.state}", style),
                str(worker.pid),
                f"{worker.running}/{worker.slots}",
            )
        for pid in self._children.values():
            table.add_row(output.text("child", "dim"), str(pid), "")
        return _panel("workers", table)


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
