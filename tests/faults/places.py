"""Where a run keeps its store: a file, or a server of its own."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.faults.audit import Auditor
from tests.faults.audit.sqlite import SqliteAuditor

if TYPE_CHECKING:
    from tests.servers.postgres import Server

ENGINES = ("sqlite", "postgres")


class Place(Protocol):
    """A new, empty store and who watches over it, until it is closed."""

    @property
    def url(self) -> str:
        """The address for workers and clients."""
        ...

    @property
    def auditor(self) -> Auditor:
        """Who asks the store itself, on a way of its own."""
        ...

    def close(self) -> None:
        """Give the store up."""
        ...


class SqlitePlace:
    """A file in the folder of the run, kept there."""

    def __init__(self, folder: Path) -> None:
        path = folder / "jobs.db"
        self.url = f"sqlite:///{path}"
        self.auditor = SqliteAuditor(path)

    def close(self) -> None:
        """Leave the file to whoever wants to look at it."""


class PostgresPlace:
    """A server in its own short folder; its log, and at the end the audit, come to the run's.

    It is as durable as it comes: what it has confirmed is on the disk.
    """

    def __init__(self, folder: Path) -> None:
        # Imported late: a run on a file needs neither a server nor its driver.
        from tests.faults.audit.postgres import PostgresAuditor
        from tests.servers import postgres

        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.stack = ExitStack()
        binaries = postgres.newest_server()
        self.server: Server = self.stack.enter_context(postgres.start(binaries, folder))
        self.url = self.server.url()
        self.auditor = PostgresAuditor(self.url)

    def close(self) -> None:
        try:
            self.auditor.keep(self.folder / "audit.jsonl")
        finally:
            self.auditor.close()
            self.stack.close()


class LinkedPlace(PostgresPlace):
    """A server that workers and clients reach through a link, which can be broken.

    The auditor has a way of its own.
    """

    def __init__(self, folder: Path) -> None:
        from tests.proxies.addresses import target_of, through
        from tests.proxies.link import Link
        from tests.proxies.wires import PostgresWire

        super().__init__(folder)
        self.link = self.stack.enter_context(Link(target_of(self.url), wire=PostgresWire))
        self.url = through(self.url, self.link.port)

    def move(self, server: Server) -> None:
        """Let both ways lead to another server."""
        from tests.proxies.addresses import target_of

        self.server = server
        self.link.target = target_of(server.url())
        self.auditor.move(server.url())


@dataclass(frozen=True, slots=True)
class Ground:
    """What a scenario is played on."""

    engine: str = "sqlite"
    source: Path | None = None
    """A copy of the sources for the processes; None: the ones that are installed."""

    def place(self, folder: Path) -> Place:
        """Make a new, empty store."""
        return PostgresPlace(folder) if self.engine == "postgres" else SqlitePlace(folder)


SQLITE = Ground()
POSTGRES = Ground("postgres")
