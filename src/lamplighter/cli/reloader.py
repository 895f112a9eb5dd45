"""Notices that a program's files have changed, and has its worker read them anew."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from lamplighter import runtime
from lamplighter.service import Service

LOOK = 0.5
"""Seconds between two looks at the files."""
QUIET = 0.1
"""Files are read when nothing has changed for so long: editors and formatters write in turns."""
MOST = 5_000
"""So many files are watched at most, and in so many folders."""

Stamps = Mapping[Path, tuple[int, int]]
"""Time of change and size of each file."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})


class Reloader(Service):
    """Calls back with the names of the files that have changed, after the last of them has.

    Watched are the Python files in the folders given and below them, but for hidden folders,
    virtual environments and what was installed.
    """

    name = "reload"

    def __init__(
        self, folders: Iterable[Path], on_change: Callable[[list[str]], None], *, look: float = LOOK
    ) -> None:
        super().__init__()
        self._folders = sorted(set(folders))
        self._on_change = on_change
        self._look = look
        self._seen: Stamps | None = None
        self._changed: set[Path] = set()

    async def step(self) -> float:
        """Look once."""
        began = runtime.monotonic()
        found = await asyncio.to_thread(stamps, self._folders)
        # However large the folders are, looking at them takes a small part of the time.
        rest = max(self._look, 10 * (runtime.monotonic() - began))
        seen, self._seen = self._seen, found
        if seen is None:
            return rest
        changed = {path for path in seen.keys() | found.keys() if seen.get(path) != found.get(path)}
        if changed:
            self._changed |= changed
            return QUIET
        if self._changed:
            names = sorted(_shown(path) for path in self._changed)
            self._changed.clear()
            self._on_change(names)
        return rest


def folders_of(module: str) -> list[Path]:
    """Return the folders whose files a program is made of: the working folder and its package's."""
    found = [Path.cwd()]
    package = sys.modules.get(module.partition(".")[0])
    file = getattr(package, "__file__", None)
    if file is not None:
        path = Path(file).resolve()
        inside = path.name == "__init__.py"
        # A single module may lie among all that is installed; its neighbours do not concern us.
        if inside or not _is_foreign(path.parent):
            found.append(path.parent)
    # A folder inside of another is watched with it.
    return [folder for folder in found if not any(other in folder.parents for other in found)]


def stamps(folders: Iterable[Path]) -> Stamps:
    """Return what tells a changed file from an unchanged one."""
    found: dict[Path, tuple[int, int]] = {}
    ahead = deque(folders)
    for _ in range(MOST):
        if not ahead or len(found) >= MOST:
            break
        try:
            with os.scandir(ahead.popleft()) as entries:
                # In order, so that the same ones are watched each time if there are too many.
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        ahead += [
            Path(entry)
            for entry in inside
            if entry.is_dir(follow_symlinks=False) and not _is_foreign(Path(entry))
        ]
        for entry in inside:
            if entry.name.endswith(".py"):
                # It may have been deleted just now, or lead nowhere.
                with suppress(OSError):
                    status = entry.stat()
                    found[Path(entry)] = (status.st_mtime_ns, status.st_size)
    return found


def _is_foreign(folder: Path) -> bool:
    name = folder.name
    return name.startswith(".") or name in _SKIPPED or os.path.lexists(folder / "pyvenv.cfg")


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)
