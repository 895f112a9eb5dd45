"""Finds processes: by their parents, and by the environment they were started with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    born: int

    def alive(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat.born == self.born and stat.state not in "ZX"

    def command(self) -> str:
        """Say what it runs, as far as one can see."""
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return "gone"
        return b" ".join(words).decode(errors="replace").strip()[:120]


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent: int
    born: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may contain anything, so count from its end.
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], parent=int(fields[1]), born=int(fields[19]))


def identify(pid: int) -> Found | None:
    stat = _stat(pid)
    return None if stat is None else Found(pid, stat.born)


def children_of(pid: int) -> list[Found]:
    """Give the living children of a process, in the order of their numbers."""
    return [one for one, parent in _living() if parent == pid]


def tree_of(pid: int) -> list[Found]:
    """Give all living descendants of a process, parents before their children."""
    by_parent: dict[int, list[Found]] = {}
    for one, parent in _living():
        by_parent.setdefault(parent, []).append(one)
    found: list[Found] = []
    parents = [pid]
    for parent in parents:
        found += by_parent.get(parent, [])
        parents += [one.pid for one in by_parent.get(parent, [])]
    return found


def marked(mark: str) -> list[Found]:
    """Give the living processes whose environment has ``NAME=value``, or any value of ``NAME=``."""
    found: list[Found] = []
    for one, _ in _living():
        try:
            variables = Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        wanted = mark.encode()
        named = mark.endswith("=")
        if any(it.startswith(wanted) if named else it == wanted for it in variables):
            found.append(one)
    return found


def _living() -> list[tuple[Found, int]]:
    """Give every living process but this one, with its parent."""
    found: list[tuple[Found, int]] = []
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):  # noqa: PTH208 - quicker
        stat = _stat(int(name))
        if stat is not None and stat.state not in "ZX" and int(name) != os.getpid():
            found.append((Found(int(name), stat.born), stat.parent))
    return found
