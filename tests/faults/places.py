"""Where a run keeps its store: a file, or a server of its own."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.faults.audit import Auditor
from tests.faults.audit.sqlite import SqliteAuditor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.proxies.link import Link
    from tests.servers import postgres, valkey

ENGINES = ("sqlite", "postgres", "redis", "redis-sharded")
SHARDS = 4
"""Parts of a store on `redis-sharded`."""


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


class Server(Protocol):
    """What can be done to any server."""

    @property
    def pid(self) -> int: ...

    def kill9(self) -> None: ...

    def restart(self) -> None: ...


class ServedPlace(Place, Protocol):
    """A store on a server that can be killed."""

    @property
    def server(self) -> Server: ...


class LinkedPlace(Place, Protocol):
    """A store that workers and clients reach through a link, which can be broken.

    The auditor has a way of its own.
    """

    @property
    def link(self) -> Link: ...


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
        self.server: postgres.Server = self.stack.enter_context(postgres.start(binaries, folder))
        self.url = self.server.url()
        self.auditor = PostgresAuditor(self.url)

    def close(self) -> None:
        try:
            self.auditor.keep(self.folder / "audit.jsonl")
        finally:
            self.auditor.close()
            self.stack.close()


class LinkedPostgres(PostgresPlace):
    """A server behind a link."""

    def __init__(self, folder: Path) -> None:
        from tests.proxies.addresses import target_of, through
        from tests.proxies.link import Link
        from tests.proxies.wires import PostgresWire

        super().__init__(folder)
        self.link = self.stack.enter_context(Link(target_of(self.url), wire=PostgresWire))
        self.url = through(self.url, self.link.port)

    def move(self, server: postgres.Server) -> None:
        """Let both ways lead to another server."""
        from tests.proxies.addresses import target_of

        self.server = server
        self.link.target = target_of(server.url())
        self.auditor.move(server.url())


class RedisPlace:
    """A Valkey or Redis server; its log, and at the end what the audit reads, come to the run's.

    It is as durable as we ask for by default. It never makes its log of changes shorter, because
    that is what the audit reads.
    """

    def __init__(
        self,
        folder: Path,
        *,
        options: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        disk: Path | None = None,
    ) -> None:
        from tests.faults.audit.redis import RedisAuditor
        from tests.servers import valkey

        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.stack = ExitStack()
        self.options = dict(options or {})
        self.server: valkey.Server = self.stack.enter_context(
            valkey.start(
                valkey.any_program(),
                folder,
                settings={"auto-aof-rewrite-percentage": "0", **(settings or {})},
                environment=environment,
                disk=disk,
            )
        )
        self.url = self.server.url(**self.options)
        self.auditor = RedisAuditor(self.server, self.url)

    def close(self) -> None:
        try:
            self.auditor.keep(self.folder / "log-of-changes")
        finally:
            self.auditor.close()
            self.stack.close()


class LinkedRedis(RedisPlace):
    """A server behind a link."""

    def __init__(
        self,
        folder: Path,
        *,
        options: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        from tests.proxies.addresses import target_of, through
        from tests.proxies.link import Link
        from tests.proxies.redis_wire import RedisWire

        super().__init__(folder, options=options, settings=settings)
        self.link = self.stack.enter_context(Link(target_of(self.url), wire=RedisWire))
        self.url = through(self.url, self.link.port)

    def lead_to(self, server: valkey.Server) -> None:
        """Let the link lead to another server, which need not be a primary yet."""
        from tests.proxies.addresses import target_of

        self.link.target = target_of(server.url())

    def move(self, server: valkey.Server) -> None:
        """Let both ways lead to another server."""
        self.server = server
        self.lead_to(server)
        self.auditor.move(server, server.url(**self.options))


@dataclass(frozen=True, slots=True)
class Ground:
    """What a scenario is played on."""

    engine: str = "sqlite"
    source: Path | None = None
    """A copy of the sources for the processes; None: the ones that are installed."""

    def place(self, folder: Path) -> Place:
        """Make a new, empty store."""
        return SqlitePlace(folder) if self.engine == "sqlite" else self.served(folder)

    def served(self, folder: Path) -> ServedPlace:
        """Make one on a server that can be killed."""
        if self.engine == "postgres":
            return PostgresPlace(folder)
        return RedisPlace(folder, options=self.options)

    def linked(self, folder: Path) -> LinkedPlace:
        """Make one on a server behind a link."""
        if self.engine == "postgres":
            return LinkedPostgres(folder)
        return LinkedRedis(folder, options=self.options)

    @property
    def options(self) -> dict[str, str]:
        """What the address of a Redis store says beside where it is."""
        return {"shards": str(SHARDS)} if self.engine == "redis-sharded" else {}


SQLITE = Ground()
POSTGRES = Ground("postgres")
REDIS = Ground("redis")
SHARDED = Ground("redis-sharded")
