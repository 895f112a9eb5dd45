"""The file: where it is, whether it is ours, how a connection to it is set up."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from lamplighter.engines.sqlite import faults
from lamplighter.engines.sqlite.turnstile import Turnstile
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import (
    InvalidUrl,
    StoreForeign,
    StoreReadOnly,
    StoreUnreachable,
)
from lamplighter.model.names import shown
from lamplighter.port.layouts import Layouts

if TYPE_CHECKING:
    from collections.abc import Callable

APPLICATION_ID = 0x4C414D50  # "LAMP"
FIRST = 6
"""The version that the first migration makes; older stores are from before the first release."""
MINIMUM_SQLITE = (3, 37, 0)
SIDES = ("", "-wal", "-shm", "-next", "-write")
"""What is added to the path of the database for each of its files."""
_BUSY_MS = 5_000
_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "glusterfs", "afs", "lustre")
_LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuse.ntfs", "fuse.exfat")
"""Other file systems in user space mostly lead over a network."""


def path_of(url: str) -> Path:
    """Return the file an sqlite url names: `sqlite:///relative.db` or `sqlite:////absolute.db`."""
    prefix = "sqlite:///"
    text = url[len(prefix) :] if url.startswith(prefix) else ""
    if not text or "?" in text or "\x00" in text or text.startswith(":memory:"):
        raise InvalidUrl(
            f"{shown(redacted(url))} does not name a database file",
            hint="write sqlite:///jobs.db for a file here, sqlite:////srv/jobs.db for one there",
            value=redacted(url),
        )
    # As SQLite does: the log lies beside the file, and not beside a link to it.
    return Path(text).resolve()


def check_place(path: Path) -> None:
    """Refuse places where SQLite's locks do not work or nothing can be written."""
    try:
        _check_place(path)
    except OSError as error:
        raise StoreUnreachable(
            f"the database `{path}` cannot be reached: {error.strerror}",
            hint="check that every folder on the way may be entered by this user",
            value=str(path),
        ) from error


def _check_place(path: Path) -> None:
    if sqlite3.sqlite_version_info < MINIMUM_SQLITE:
        raise StoreUnreachable(
            f"this Python brings SQLite {sqlite3.sqlite_version}; 3.37 or newer is needed",
            hint="use a newer Python build",
            value=sqlite3.sqlite_version,
        )
    if not path.parent.is_dir():
        raise StoreUnreachable(
            f"the folder `{path.parent}` for the database `{path.name}` does not exist",
            hint=f"create it: mkdir -p {path.parent}",
            value=str(path),
        )
    if path.is_dir():
        raise StoreUnreachable(
            f"`{path}` is a folder, not a database file",
            hint="name a file inside it",
            value=str(path),
        )
    kind = file_system(path.parent)
    if is_remote(kind):
        raise StoreUnreachable(
            f"`{path}` lies on a network file system ({kind}), where file locks cannot be trusted",
            hint="use a local disk, or PostgreSQL for several machines",
            value=str(path),
        )
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StoreReadOnly(
            f"the database `{path}` cannot be written",
            hint="make the file and its folder writable for this user",
            value=str(path),
        )


def check_there(path: Path) -> None:
    """Refuse a file that is not there, or empty."""
    if _is_empty(path):
        raise StoreUnreachable(
            f"there is no store `{path}` yet",
            hint="name another one in the url, or run: lamplighter migrate",
            value=str(path),
        )


def check_not_moved(path: Path) -> None:
    """Refuse to make a store in the place of one that was moved away from its log."""
    log = Path(f"{path}-wal")
    if _is_empty(path) and not _is_empty(log):
        raise StoreUnreachable(
            f"there is no database `{path}`, but its write-ahead log `{log.name}` is there: it was "
            "moved or deleted while it was in use, and a new one would destroy the log",
            hint=f"put the database back; or, if it is to be gone, delete its log: rm {log}",
            value=str(path),
        )


def _is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0


def mend_modes(path: Path) -> None:
    """Let nobody use the files beside a database who may not use the database itself."""
    mode = path.stat().st_mode & 0o777
    for side in SIDES[1:]:
        with contextlib.suppress(OSError):  # not there, or another's: `doctor` tells
            beside = Path(f"{path}{side}")
            found = beside.stat().st_mode & 0o777
            if found & ~mode:
                beside.chmod(found & mode)


def is_remote(kind: str) -> bool:
    """Tell whether a kind of file system leads over a network, as far as one can tell."""
    in_user_space = kind.startswith("fuse.") and not kind.startswith(_LOCAL_FUSE)
    return kind.startswith(_NETWORK) or in_user_space


def file_system(folder: Path) -> str:
    """Name the type of file system under a folder, as far as the system says."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    where = str(folder.resolve())
    for line in lines:
        _, mount, name, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        inside = where == mount or where.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, name
    return kind


def open_connection(path: Path, clock_ms: Callable[[], int], *, writer: bool) -> sqlite3.Connection:
    """Open one connection, set up for writing or for reading only."""
    try:
        # Never made here: an empty file in the place of one that was moved would be taken for it.
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode=rw",
            uri=True,
            timeout=_BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.create_function("now_ms", 0, clock_ms)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA cache_size = -32768")
            connection.execute("PRAGMA wal_autocheckpoint = 20000")  # a safety net: see writer.py
            connection.execute(f"PRAGMA journal_size_limit = {4 * 1024 * 1024}")
            if not writer:
                connection.execute("PRAGMA query_only = 1")
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise faults.explain(error, path) from error
    return connection


def migrations() -> tuple[str, ...]:
    """All migrations in order; the first makes a store of the version `FIRST`."""
    folder = resources.files("lamplighter.engines.sqlite").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def layouts() -> Layouts:
    """The versions of a store that this program can use."""
    return Layouts(FIRST, FIRST + len(migrations()) - 1)


def prepare(path: Path, clock_ms: Callable[[], int], *, migrate: bool) -> tuple[int, int]:
    """Check that the file is ours and of this version; fill an empty one, migrate if asked.

    Returns the version before and after. A store that is up to date is only read, so that opening
    one under load waits for nobody. Changes are made behind the turnstile in one transaction, so
    that two processes that start together do not both create the tables.
    """
    newest = layouts().newest
    with closing(open_connection(path, clock_ms, writer=True)) as connection:
        try:
            found = known_version(connection, path, migrate=migrate)
            if found == newest:
                return found, found
            with closing(Turnstile(path)) as turnstile, turnstile:
                return _fill(connection, path, migrate=migrate), newest
        except sqlite3.Error as error:
            raise faults.explain(error, path) from error
        except OSError as error:
            raise faults.explain_os(error, path) from error


def _fill(connection: sqlite3.Connection, path: Path, *, migrate: bool) -> int:
    """Bring a store to the last version; returns the version it had."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnreachable(
            f"the database `{path}` cannot use a write-ahead log; SQLite says `{mode}`",
            hint="use a local disk whose file system supports shared memory",
            value=str(path),
        )
    connection.execute("BEGIN IMMEDIATE")
    before = known_version(connection, path, migrate=migrate)
    for step in layouts().to_apply(before, migrations()):
        for statement in split_script(step):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {layouts().newest}")
    connection.execute("COMMIT")
    return before


def known_version(connection: sqlite3.Connection, path: Path, *, migrate: bool) -> int:
    """Return the store's version if this program may use it."""
    version = _version(connection, path)
    layouts().check(
        version,
        store=f"the database `{path}`",
        value=str(path),
        migrate=migrate,
        remedy=f"lamplighter migrate --url sqlite:///{path}",
    )
    return version


def _version(connection: sqlite3.Connection, path: Path) -> int:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if empty:
        return 0
    if owner != APPLICATION_ID:
        raise StoreForeign(
            f"the database `{path}` belongs to another program",
            hint="name another file in the url, for instance sqlite:///lamplighter.db",
            value=str(path),
        )
    return int(version)


def split_script(text: str) -> list[str]:
    """Split a migration into statements; `executescript` would commit on its own."""
    statements: list[str] = []
    buffer = ""
    for line in text.splitlines():
        buffer += line + "\n"
        if sqlite3.complete_statement(buffer):
            statements.append(buffer)
            buffer = ""
    return [s for s in statements if s.strip()]
