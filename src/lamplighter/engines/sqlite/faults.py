"""Turns what SQLite says into errors that name the file, the cause and the remedy."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from typing import TYPE_CHECKING

from lamplighter.model.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from pathlib import Path

_PRIMARY = 0xFF
_NEARLY_NOTHING = 64 * 1024


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the StoreError for an sqlite3 error on this file."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(path)):
        return StoreFull(
            f"the disk under `{path}` is full",
            hint="free some space; nothing was half written, and work goes on by itself then",
            value=str(path),
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreReadOnly(
            f"the database `{path}` cannot be written",
            hint="make the file and its folder writable for this user",
            value=str(path),
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"another program holds a lock on `{path}`",
            hint="close programs with an open transaction on it, such as a database shell",
            value=str(path),
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreForeign(
            f"`{path}` is not an SQLite database",
            hint="name another file in the url, for instance sqlite:///lamplighter.db",
            value=str(path),
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreDamaged(
            f"the database `{path}` is damaged: {error}",
            hint="restore it from a backup, or save what is left with `sqlite3 FILE .recover`",
            value=str(path),
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnreachable(
            f"the database `{path}` cannot be read or written: {error}",
            hint="check the disk, its quota and the file-size limit (`ulimit -f`)",
            value=str(path),
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOLFS):
        return StoreUnreachable(
            f"the database `{path}` cannot be opened: {error}",
            hint="check that the folder exists, is writable and lies on a local disk",
            value=str(path),
        )
    return StoreError(
        f"SQLite failed on `{path}`: {error}",
        hint="this is not expected; please report it with the text above",
        value=str(path),
    )


def lasts(error: sqlite3.Error) -> bool:
    """Tell whether a connection may go on to fail so when the cause is gone."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


def explain_os(error: OSError, path: Path) -> StoreError:
    """Return the StoreError for an error of the system around this file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(
            f"the disk under `{path}` is full",
            hint="free some space; what was asked may be repeated safely",
            value=str(path),
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreReadOnly(
            f"files beside the database `{path}` cannot be written: {error.strerror}",
            hint="make the file and its folder writable for this user",
            value=str(path),
        )
    return StoreUnreachable(
        f"the system failed on `{path}`: {error}",
        hint="check the disk; what was asked may be repeated safely",
        value=str(path),
    )


def _disk_is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _NEARLY_NOTHING
    except OSError:
        return False
