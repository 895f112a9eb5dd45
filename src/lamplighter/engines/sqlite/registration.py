"""One name for one database file: what its processes agree on by locks.

SQLite keeps the write-ahead log beside the file, under the name by which the file was opened. A
file that is open under two names, as a hard link or mounted on its own at two places, gets two
logs, and each overwrites what the other has acknowledged. So every process registers where its log
is, by a shared lock on one byte of the file, far behind its end; another byte that is locked is
another place. Locks end with their process, so that no crash leaves a registration, and they are
seen through every name of the file and from every container of the machine.

What a crash leaves is a log without a lock. So two names are also refused where they can be seen
without one: a file that is itself mounted, whose log would go with its container, and a hard link
under which the file was never used.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import threading
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

from lamplighter.engines.sqlite import faults
from lamplighter.model.errors import StoreAliased

PRIVATE = 0o600
_FIRST, _BYTES = 1 << 60, 7
"""Where the bytes lie, and how many of a hash choose one: SQLite locks none there."""
_END = _FIRST + (1 << 8 * _BYTES)
_FLOCK = "hhqqi"
# Locks of the open file, not of the process: others of this process do not end them.
_SET = getattr(fcntl, "F_OFD_SETLK", None)
_ASK = getattr(fcntl, "F_OFD_GETLK", None)
_IN_USE = "is in use under another name: a hard link, or the file itself mounted elsewhere"
_UNKNOWN = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


@dataclass(slots=True)
class _File:
    """A file that this process has registered, and how often."""

    key: tuple[int, int]
    """Device and inode."""
    descriptor: int
    place: int
    users: int = 1


_files: dict[tuple[int, int], _File] = {}
_gate = threading.Lock()


class Registration:
    """The use of a file under one name; every connection to it is opened and closed within.

    Closing any descriptor of a file ends the locks that SQLite holds on it for this process: the
    one that is opened here is closed when nobody in this process uses the file any more.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        """Register, or raise StoreAliased. ``create`` makes a file that only its owner may use."""
        place = _place(path)
        with _gate:
            try:
                file = _known(path)
                if file is None:
                    file = _registered(path, place, create=create)
                    _files[file.key] = file
                elif file.place != place:
                    raise _aliased(path, _IN_USE)
                else:
                    file.users += 1
            except OSError as error:
                raise faults.explain_os(error, path) from error
        self._file = file

    def release(self) -> None:
        """End it; to be called once."""
        with _gate:
            self._file.users -= 1
            # After a fork, it is the parent's.
            if self._file.users == 0 and _files.get(self._file.key) is self._file:
                del _files[self._file.key]
                os.close(self._file.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _registered(path: Path, place: int, *, create: bool) -> _File:
    descriptor, made = _opened(path, create=create)
    try:
        if made:
            os.fchmod(descriptor, PRIVATE)  # whatever the umask
        if _is_mounted(path):
            raise _aliased(path, "is itself mounted, without the folder around it")
        if os.fstat(descriptor).st_nlink > 1 and not Path(f"{path}-next").exists():
            raise _aliased(path, "is a hard link under which it was never used")
        if _lock(descriptor, place) and (
            _is_locked(descriptor, _FIRST, place) or _is_locked(descriptor, place + 1, _END)
        ):
            raise _aliased(path, _IN_USE)
        found = os.fstat(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return _File((found.st_dev, found.st_ino), descriptor, place)


def _opened(path: Path, *, create: bool) -> tuple[int, bool]:
    """Return a descriptor, and whether the file was made for it."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if create:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, PRIVATE), True
        except FileExistsError:
            pass
    return os.open(path, flags), False


def _known(path: Path) -> _File | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _files.get((found.st_dev, found.st_ino))


def _place(path: Path) -> int:
    """Return the byte that stands for a log beside this path: its folder and its name."""
    try:
        folder = path.parent.stat()
    except OSError as error:
        raise faults.explain_os(error, path) from error
    name = f"{folder.st_dev}:{folder.st_ino}:{path.name}".encode("utf-8", "surrogateescape")
    return _FIRST + int.from_bytes(blake2b(name, digest_size=_BYTES).digest(), "big")


def _flock(kind: int, first: int, end: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, first, end - first, 0)


def _lock(descriptor: int, place: int) -> bool:
    """Lock a byte; False: the system has no such locks, and nobody can register."""
    if _SET is None:
        return False
    try:
        fcntl.fcntl(descriptor, _SET, _flock(fcntl.F_RDLCK, place, place + 1))
    except OSError as error:
        # Sandboxes and some file systems: a store that works there is not to be refused.
        if error.errno in _UNKNOWN:
            return False
        raise
    return True


def _is_locked(descriptor: int, first: int, end: int) -> bool:
    """Tell whether anybody else has locked one of these bytes."""
    if _ASK is None or first >= end:
        return False
    found = fcntl.fcntl(descriptor, _ASK, _flock(fcntl.F_WRLCK, first, end))
    return struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK


def _is_mounted(path: Path) -> bool:
    """Tell whether something is mounted at the very path, as far as the system says."""
    try:
        lines = Path("/proc/self/mounts").read_bytes().splitlines()
    except OSError:
        return False
    # Blanks, line ends and backslashes are written as \\ooo.
    name = re.sub(rb"[ \t\n\\]", lambda found: b"\\%03o" % found[0][0], os.fsencode(path))
    return any(line.split(b" ")[1:2] == [name] for line in lines)


def _aliased(path: Path, what: str) -> StoreAliased:
    return StoreAliased(
        f"the database `{path}` {what}; two names mean two write-ahead logs, which would damage it",
        hint="let all processes use one name, and remove others; in containers, mount the folder "
        "that has the file, not the file: docs/guides/sqlite.md",
        value=str(path),
    )


def _forget_after_fork() -> None:
    """Close what a forked child inherited; its parent keeps the locks."""
    for file in _files.values():
        os.close(file.descriptor)
    _files.clear()
    globals()["_gate"] = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
