"""How answers look: tables and colour for people, JSON for programs."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import click

from lamplighter import runtime
from lamplighter.cli import columns
from lamplighter.model.counts import counted
from lamplighter.model.job import Mark
from lamplighter.model.journal import Progress
from lamplighter.observability import logs, outlet
from lamplighter.observability.logs import json_text
from lamplighter.port.values import COUNT_LIMIT

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

Cell = str | tuple[str, str]
"""Text, or text and its style."""

STYLES = {
    "ready": "cyan",
    "scheduled": "blue",
    "blocked": "blue",
    "retrying": "yellow",
    "claimed": "cyan",
    "running": "bold yellow",
    "paused": "magenta",
    "cancelling": "magenta",
    "succeeded": "green",
    "dead": "bold red",
    "cancelled": "dim",
    "expired": "dim",
    "alive": "green",
    "suspect": "yellow",
    "done": "green",
    "requested": "green",
    "already": "dim",
    "conflict": "red",
    "unknown": "red",
}

_SHORT = 1.0
_STEPS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
_WIDE = 10_000
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)


# ── print ────────────────────────────────────────────────────────────────────────────────────


def width_of(target: TextIO) -> int:
    """Return how many characters fit into a line; output that goes elsewhere has all the room."""
    return shutil.get_terminal_size().columns if target.isatty() else _WIDE


def console(file: TextIO | None = None, *, width: int | None = None) -> Console:
    """Return the terminal; output that goes elsewhere is neither coloured nor folded."""
    from rich.console import Console

    target = file or sys.stdout
    if width is None and not target.isatty():
        width = _WIDE
    return Console(file=target, width=width, highlight=False, markup=False, emoji=False)


def print_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json_text(document, indent=2))


def print_table(declared: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str) -> None:
    """Print rows under their headings; `columns.column` says how columns are declared."""
    from rich.table import Table

    cells = [[_text(cell) for cell in row] for row in rows]
    if not cells:
        note(empty)
        return
    head = [columns.column(each) for each in declared]
    parts = [
        columns.Part(
            each,
            width=max(len(each.name), *(cell.cell_len for cell in column)),
            floor=max(len(cell) if _ID.fullmatch(cell.plain) else 0 for cell in column),
            empty=not any(cell.plain for cell in column),
        )
        for each, column in zip(head, zip(*cells, strict=True), strict=True)
    ]
    drawn = columns.fitted(parts, width_of(sys.stdout))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, columns.GAP, 0, 0))
    for each, width in zip(head, drawn, strict=True):
        if width is not None:
            right = "right" if each.right else "left"
            table.add_column(each.name, justify=right, no_wrap=True, width=width)
    for row in cells:
        for cell, width in zip(row, drawn, strict=True):
            cell.truncate(width or 0, overflow="ellipsis")
        shown = (cell for cell, width in zip(row, drawn, strict=True) if width is not None)
        table.add_row(*shown)
    _print(table)
    hidden = [
        part.column.name
        for part, width in zip(parts, drawn, strict=True)
        if width is None and not part.empty
    ]
    if hidden:
        names = ", ".join(hidden)
        note(f"\nhint: no room for {names}; a wider terminal or --json shows more")


def print_fields(fields: Iterable[tuple[str, Cell | None]]) -> None:
    """Print names and values below each other; what is None is left out."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value is not None and value != "":
            table.add_row(name, _text(value))
    _print(table)


def print_text(text: str, **style: Any) -> None:
    """Print a line, or several, to stdout, in a style of click's."""
    click.secho(printable(text), **style)


def note(text: str) -> None:
    """Tell the person at the terminal something that is not the answer itself."""
    click.echo(printable(text), err=True)


def never_block(*, as_json: bool = False) -> None:
    """Let no reader of our output stop this process: what cannot be written is dropped."""
    if as_json:
        outlet.notice = logs.dropped_line
    outlet.install()


def tell(text: str, *, err: bool = False) -> bool:
    """Print a line of a story that goes on; False when nobody reads it any more.

    From then on the stream leads nowhere, so that neither we nor Python at its end stumble.
    """
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
            os.close(nowhere)
        return False
    return True


def _print(table: RenderableType) -> None:
    # What may not be cut goes beyond the edge, and the terminal folds it.
    target = console(width=_WIDE)
    with target.capture() as captured:
        target.print(table)
    # Cells are padded to the width of their column; at the end of a line that is only noise.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _text(cell: Cell) -> Text:
    return text(*cell) if isinstance(cell, tuple) else text(cell)


def text(value: str, style: str = "") -> Text:
    """Return text that is shown as it is, whatever it contains."""
    from rich.text import Text

    return Text(printable(value), style)


def line_text(at_ms: int, word: str, value: str, style: str) -> Text:
    """Return the line of an event, in colour."""
    from rich.text import Text

    parts = ((clock(at_ms), "dim"), " ", (f"{word:<10}", style), " ", printable(value))
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


# ── put into words ───────────────────────────────────────────────────────────────────────────


def printable(text: str) -> str:
    """Keep whatever was stored from giving orders to the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str) -> str:
    """Return text that stays on its line, so that no part of it passes for a line of ours."""
    return printable(text).replace("\n", "\\n")


def first_line(text: str, limit: int = 100) -> str:
    """Return the beginning of a text that may be long."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def cause(text: str, limit: int = 100) -> str:
    """Return what an error says first and, where that announces more, its end, which says most."""
    first = first_line(text, limit)
    last = text.rstrip().rpartition("\n")[2].strip()
    if last == first or not first.endswith(":"):
        return first
    return first_line(f"{first} {last}", limit)


def status(name: str) -> Cell:
    """Colour a status, a state or an answer."""
    return name, STYLES.get(name, "")


def hold(mark: Mark | None) -> Cell:
    """Say who holds something and why."""
    if mark is None:
        return ""
    return (f"{mark.by}: {mark.reason}" if mark.reason else mark.by), "magenta"


def letters(number: int) -> str:
    """Count dead letters."""
    return counted(number, "dead letter")


def count(number: int, *, at_least: bool = False) -> str:
    """Write a count that is exact only up to a limit."""
    return f"≥ {number:,}" if at_least or number >= COUNT_LIMIT else f"{number:,}"


def span(seconds: float) -> str:
    """Write a duration in its two largest units: `1 h 30 min`, `12 ms`."""
    if seconds < _SHORT:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + " s"
    for (size, unit), (smaller, below) in pairwise(_STEPS):
        if seconds >= size:
            whole, rest = divmod(int(seconds), int(size))
            part = rest // int(smaller)
            return f"{whole} {unit} {part} {below}" if part and whole < 10 else f"{whole} {unit}"
    raise AssertionError


def progress(found: Progress | None) -> str | None:
    """Write how far something has come: `30 of 200 (15 %), invoices`."""
    if found is None:
        return None
    text = _amount(found.done)
    if found.total is not None:
        text += f" of {_amount(found.total)}"
        share = 100 * found.done / found.total if found.total else math.nan
        if math.isfinite(share):
            # Rounded down: what is not finished is never shown as 100 %.
            text += f" ({math.floor(share)} %)"
    return f"{text}, {found.note}" if found.note else text


def _amount(number: float) -> str:
    return f"{number:,.10g}"


def away(at_ms: int | None) -> str:
    """Write an instant as its distance from now."""
    if at_ms is None:
        return ""
    seconds = (at_ms - runtime.now_ms()) / 1000
    if abs(seconds) < _SHORT:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


def instant(at_ms: int | None) -> str | None:
    """Write an instant as ISO 8601 in UTC, as programs read it."""
    if at_ms is None:
        return None
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def instant_and_away(at_ms: int | None) -> str | None:
    """Write an instant for people: when, and how far that is."""
    return None if at_ms is None else f"{instant(at_ms)} ({away(at_ms)})"


def clock(at_ms: int) -> str:
    """Write the time of day, as on the wall of this place."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%H:%M:%S")
