"""Fair access to the one write lock among processes: two file locks as a turnstile.

With one lock, or SQLite's own waiting, a light writer beside a heavy one may wait for hundreds of
milliseconds, because the heavy one takes the lock again before the other has woken. Here a writer
first takes `next`, then `write`, and lets go of `next` only when it has `write`: whoever waits at
`next` is always the very next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Turnstile:
    """Two flocks on side files of the database."""

    def __init__(self, path: Path) -> None:
        self._next = _side(path, "-next")
        try:
            self._write = _side(path, "-write")
        except OSError:
            os.close(self._next)
            raise
        _open.add(self)

    def enter(self) -> None:
        """Wait for the right to write."""
        fcntl.flock(self._next, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._write, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def leave(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._write, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *_: object) -> None:
        self.leave()

    def close(self) -> None:
        """Close the side files."""
        _open.discard(self)
        os.close(self._next)
        os.close(self._write)


def _side(path: Path, ending: str) -> int:
    """Open a file beside the database; it belongs to the same and has the same mode."""
    name, flags = f"{path}{ending}", os.O_RDWR | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        return os.open(name, flags)
    model = path.stat()
    descriptor = os.open(name, flags | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, model.st_mode & 0o666)
        if os.geteuid() == 0:
            os.fchown(descriptor, model.st_uid, model.st_gid)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


_open: weakref.WeakSet[Turnstile] = weakref.WeakSet()


def _forget_after_fork() -> None:
    """Close what a forked child inherited.

    A file lock belongs to the open file, not to the process: a child that kept it open would hold
    its dead parent's lock for ever.
    """
    for turnstile in list(_open):
        with contextlib.suppress(OSError):
            turnstile.close()


os.register_at_fork(after_in_child=_forget_after_fork)
