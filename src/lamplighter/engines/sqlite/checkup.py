"""The check-up of a database file: facts read from it, and one function for each thing to judge."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.engines.sqlite import checkpoint, database, faults
from lamplighter.engines.sqlite.registration import Registration
from lamplighter.model.errors import StoreError
from lamplighter.port import checkup
from lamplighter.port.checkup import ON_TIME, Checkup, Finding, Overdue, note, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 5.0
_STEPS = 10_000
_MIB = 1024 * 1024
_LITTLE = 1024 * _MIB
_NOTHING = 64 * _MIB
_FULL = 2
_LEVELS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}

# The last signs of time: nothing of this may lie ahead of the clock. Index: the key of `job`.
_LATEST = """
SELECT max(coalesce((SELECT max(beat) FROM worker), 0),
           coalesce((SELECT created FROM job ORDER BY seq DESC LIMIT 1), 0))
"""

_OVERDUE = """
SELECT count(*), min(wake)
FROM (SELECT wake
      FROM schedule INDEXED BY schedule_awake
      WHERE wake IS NOT NULL AND hold IS NULL AND wake <= ?
      ORDER BY wake
      LIMIT 10000)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a file."""

    path: str = "jobs.db"
    refusal: tuple[str, str] | None = None
    """Why the place or the file would be refused: the cause and the hint."""
    there: bool = True
    sqlite: tuple[int, int, int] = database.MINIMUM_SQLITE
    system: str = "ext4"
    """The kind of file system; empty where that is not told."""
    modes: tuple[tuple[str, int], ...] = (("jobs.db", 0o600),)
    """Every file of the store and its mode, the database first."""
    foreign: tuple[str, ...] = ()
    """Files beside the database that this user may not write."""
    free: int = 1 << 40
    size: int = 0
    log: int = 0
    version: int = 0
    newest: int = 0
    journal: str = "wal"
    synchronous: int = _FULL
    damage: str | None = "ok"
    """What a look through the file said; None when there was no time for all of it."""
    ahead_ms: int = 0
    """How far the newest time in the store is ahead of the clock."""
    overdue: Overdue = ON_TIME
    lease_ms: int = 30_000


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read(path: Path, clock_ms: Callable[[], int], lease_ms: int) -> Facts:
    """Look at a file without changing it."""
    known = Facts(
        path=str(path),
        there=path.exists(),
        sqlite=sqlite3.sqlite_version_info[:3],
        system=database.file_system(path.parent) if path.parent.is_dir() else "",
        newest=database.layouts().newest,
        lease_ms=lease_ms,
    )
    try:
        database.check_place(path)
        if not known.there:
            return known
        with Registration(path, create=False):
            return _read_file(known, path, clock_ms)
    except StoreError as error:
        return replace(known, refusal=(error.cause, error.hint))


def _read_file(known: Facts, path: Path, clock_ms: Callable[[], int]) -> Facts:
    sides = [Path(f"{path}{side}") for side in database.SIDES]
    found = replace(
        known,
        modes=tuple((str(one), one.stat().st_mode & 0o777) for one in sides if one.exists()),
        foreign=tuple(
            side.name for side in sides if side.exists() and not os.access(side, os.W_OK)
        ),
        free=shutil.disk_usage(path.parent).free,
        size=path.stat().st_size,
        log=sides[1].stat().st_size if sides[1].exists() else 0,
    )
    with closing(database.open_connection(path, clock_ms, writer=False)) as connection:
        try:
            version = database.known_version(connection, path, migrate=False)
            newest = connection.execute(_LATEST).fetchone()[0] if version > 0 else 0
            return replace(
                found,
                version=version,
                journal=connection.execute("PRAGMA journal_mode").fetchone()[0],
                synchronous=connection.execute("PRAGMA synchronous").fetchone()[0],
                damage=_look_through(connection),
                ahead_ms=max(0, newest - clock_ms()),
                overdue=_overdue(connection, clock_ms()) if version > 0 else ON_TIME,
            )
        except sqlite3.Error as error:
            raise faults.explain(error, path) from error


def _overdue(connection: sqlite3.Connection, now: int) -> Overdue:
    number, wake = connection.execute(_OVERDUE, (now,)).fetchone()
    return Overdue(number, now - wake if number else 0)


def _look_through(connection: sqlite3.Connection) -> str | None:
    """Let SQLite look at every page, for a few seconds at most."""
    end = runtime.monotonic() + _SECONDS
    connection.set_progress_handler(lambda: runtime.monotonic() > end, _STEPS)
    try:
        return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    finally:
        connection.set_progress_handler(None, 0)


# ── judging ──────────────────────────────────────────────────────────────────────────────────


def library(facts: Facts) -> Finding:
    """SQLite is new enough."""
    said = ".".join(map(str, facts.sqlite))
    if facts.sqlite < database.MINIMUM_SQLITE:
        return problem("sqlite", f"{said}; 3.37 or newer is needed", "use a newer Python build")
    return ok("sqlite", said)


def place(facts: Facts) -> Finding:
    """The file lies where its locks can be trusted."""
    if database.is_remote(facts.system):
        return problem(
            "place",
            f"`{facts.path}` lies on a network file system ({facts.system}), where file locks "
            "cannot be trusted",
            "use a local disk, or PostgreSQL for several machines",
        )
    if not facts.system:
        return note("place", "unverified: this system does not tell the kind of file system")
    return ok("place", f"a local file system ({facts.system})")


def permissions(facts: Facts) -> Finding:
    """This user may write all files, and strangers may read none."""
    if facts.foreign:
        return problem(
            "permissions",
            f"`{facts.foreign[0]}` cannot be written by this user",
            "run all processes of the store as one user, or let a group own the folder and files",
        )
    open_to_all = [(name, mode) for name, mode in facts.modes if mode & 0o007]
    if open_to_all:
        name, mode = open_to_all[0]
        write = any(mode & 0o002 for _, mode in open_to_all)
        grade = warning if write else note
        return grade(
            "permissions",
            f"every user of this machine may {'write' if write else 'read'} `{name}`, and "
            f"with it the arguments of jobs (mode {mode:o})",
            f"chmod o= {' '.join(shlex.quote(name) for name, _ in open_to_all)}",
        )
    return ok("permissions", f"mode {facts.modes[0][1]:o}")


def space(facts: Facts) -> Finding:
    """There is room on the disk."""
    text = f"{facts.free / _MIB:,.0f} MiB free, the store has {facts.size / _MIB:,.1f} MiB"
    remedy = "free some space, or keep finished jobs for a shorter time (`keep_finished`)"
    if facts.free < _NOTHING:
        return problem("disk", f"{text}: soon nothing can be written", remedy)
    if facts.free < min(_LITTLE, max(_NOTHING, facts.size)):
        return warning("disk", text, remedy)
    return ok("disk", text)


def schema(facts: Facts) -> Finding:
    """There is a store, and this program can use it."""
    if facts.refusal is not None:
        return problem("schema", *facts.refusal)
    if not facts.there or facts.version == 0:
        return problem(
            "schema",
            f"there is no store `{facts.path}` yet",
            "`lamplighter dev`, `worker`, `serve` and `migrate` make one; or name another with "
            "--url",
        )
    return ok("schema", f"version {facts.version}")


def journal(facts: Facts) -> Finding:
    """The store has a write-ahead log of a sane size."""
    if facts.journal != "wal":
        return problem(
            "journal",
            f"the journal mode is `{facts.journal}`: readers and writers stop each other",
            f"end all processes, then: sqlite3 {facts.path} 'PRAGMA journal_mode = WAL'",
        )
    if facts.log > checkpoint.ALARM_BYTES:
        return warning(
            "journal",
            f"the write-ahead log has {facts.log / _MIB:,.0f} MiB: a reader that never ends keeps "
            "it from starting over",
            "close database shells and other programs with an open transaction on the file",
        )
    return ok("journal", f"write-ahead log, {facts.log / _MIB:,.1f} MiB")


def synchronous(facts: Facts) -> Finding:
    """An answer is given after the commit is on the disk."""
    said = _LEVELS.get(facts.synchronous, str(facts.synchronous))
    if facts.synchronous < _FULL:
        return problem(
            "synchronous",
            f"{said}: a crash of the machine loses what was acknowledged last",
            "use a build of SQLite that can be told `PRAGMA synchronous = FULL`",
        )
    return ok("synchronous", f"{said}: jobs are acknowledged when they are on the disk")


def integrity(facts: Facts) -> Finding:
    """The file is whole."""
    if facts.damage is None:
        return note(
            "integrity",
            f"no damage found in {_SECONDS:.0f} s; the file is too large to look at all of it",
            f"at a quiet time: sqlite3 {facts.path} 'PRAGMA integrity_check'",
        )
    if facts.damage != "ok":
        return problem(
            "integrity",
            f"damaged: {facts.damage}",
            "restore it from a backup, or save what is left with `sqlite3 FILE .recover`",
        )
    return ok("integrity", "no damage found")


def clock(facts: Facts) -> Finding:
    """Time has not gone back."""
    if facts.ahead_ms > facts.lease_ms / 4:
        return warning(
            "clock",
            f"the newest time in the store is {facts.ahead_ms / 1000:,.1f} s ahead of this "
            "machine's clock, which was set back",
            "set the clock by NTP (timedatectl); leases and due times are right again when it has "
            "caught up",
        )
    return ok("clock", "nothing in the store is ahead of this machine's clock")


def schedules(facts: Facts) -> Finding:
    """Schedules are fired when they are due."""
    return checkup.schedules(facts.overdue)


ALWAYS = (library, place, schema)
CHECKS = (*ALWAYS, permissions, space, journal, synchronous, integrity, clock, schedules)


def usable(facts: Facts) -> bool:
    """Tell whether there is a store to look at."""
    return facts.there and facts.refusal is None and facts.version > 0


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Let each check judge; where there is no store, most have nothing to look at."""
    return tuple(check(facts) for check in (CHECKS if usable(facts) else ALWAYS))


def survives(facts: Facts) -> dict[str, str]:
    """Say of each accident whether an acknowledged job survives it."""
    if not usable(facts):
        return {}
    level = _LEVELS.get(facts.synchronous, str(facts.synchronous))
    settings = f"{facts.journal.upper()}, synchronous={level}"
    if facts.journal == "wal" and facts.synchronous >= _FULL:
        power = f"yes, if the disk keeps what it says it has written ({settings})"
    else:
        power = f"no: what was acknowledged last may be lost ({settings})"
    return {
        "death of a process": "yes",
        "power loss of the machine": power,
        "loss of the disk": "no: keep backups",
    }


def check_up(path: Path, clock_ms: Callable[[], int], lease_ms: int) -> Checkup:
    """Read all facts, and let each check judge them."""
    facts = read(path, clock_ms, lease_ms)
    return Checkup(engine="sqlite", findings=judge(facts), survives=survives(facts))
