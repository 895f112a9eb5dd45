"""Catches what a program and its child processes print, while a view has the terminal."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from lamplighter.observability.outlet import Outlet

KEPT = 20
_CHUNK = 1 << 16
_STDOUT, _STDERR = 1, 2
_PICTURES = 1 << 16
"""Bytes that wait for a terminal that stands still; older pictures are of no use later."""

_LAST = 0.5
"""Seconds that the terminal gets to show the end."""


@contextmanager
def captured(on_line: Callable[[str], None]) -> Generator[TextIO]:
    """Lend the terminal; all other output comes to ``on_line`` for the time of the ``with`` block.

    When the block ends in an error, the last lines are printed: they may tell the reason.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    stdout, stderr = os.dup(_STDOUT), os.dup(_STDERR)
    source, sink = os.pipe()
    os.set_blocking(source, False)
    os.dup2(sink, _STDOUT)
    os.dup2(sink, _STDERR)
    os.close(sink)
    lines = _Lines(source, on_line)
    loop = asyncio.get_running_loop()
    loop.add_reader(source, lines.read)
    failed = True
    try:
        # Ctrl-S stops the terminal, not the work.
        outlet = Outlet(stdout, limit=_PICTURES, tells=False)
        with io.TextIOWrapper(io.BufferedWriter(outlet), encoding=sys.stdout.encoding) as terminal:
            yield terminal
            terminal.flush()
            outlet.settle(_LAST)
        failed = False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        loop.remove_reader(source)
        os.dup2(stdout, _STDOUT)
        os.dup2(stderr, _STDERR)
        lines.read()
        for descriptor in (stdout, stderr, source):
            os.close(descriptor)
        if failed:
            sys.stderr.writelines(f"{line}\n" for line in lines.last)


class _Lines:
    """Cuts what comes through a pipe into lines."""

    def __init__(self, source: int, on_line: Callable[[str], None]) -> None:
        self.last: deque[str] = deque(maxlen=KEPT)
        self._source = source
        self._on_line = on_line
        self._rest = b""

    def read(self) -> None:
        """Take in what has arrived."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._source, _CHUNK):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    text = line.decode(errors="replace")
                    self.last.append(text)
                    self._on_line(text)
