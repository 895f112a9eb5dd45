"""A PostgreSQL server of the tests' own: started, killed, restarted and copied at will.

The data and the socket lie in a short temporary folder, because the path of a socket must be short
and because a server started by root runs as somebody who may not enter pytest's folders.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from tests.faults.processes import Found, tree_of
from tests.servers.guard import Guard
from tests.servers.launchers import Launcher, launchers
from tests.servers.ports import ServerFailed, free_port
from tests.servers.programs import Binaries, ServerMissing, find_servers, newest_server

__all__ = [
    "Binaries",
    "Server",
    "ServerFailed",
    "ServerMissing",
    "Standby",
    "find_servers",
    "newest_server",
    "standby",
    "start",
]

USER = "postgres"
PATIENCE = 30.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "shared_buffers": "16MB",
}
FAST = {"fsync": "off", "full_page_writes": "off"}
"""For tests that lose nothing when the machine fails: never for claims about durability."""

_LONGEST_HOME = 70
_MAKE = ("--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
_COPY = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")


class Server:
    """One server: its programs, its data, its port, and its process while it runs."""

    def __init__(
        self, binaries: Binaries, launcher: Launcher, home: Path, log: Path, port: int
    ) -> None:
        self.binaries = binaries
        self.launcher = launcher
        self.home = home
        self.log = log
        self.port = port
        self._process: subprocess.Popen[str] | None = None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def pid(self) -> int:
        """The number of the server's first process."""
        if self._process is None:
            raise ServerFailed(f"{self} is not running\n\nhint: call restart() first")
        return self._process.pid

    def __str__(self) -> str:
        return f"{self.binaries}, port {self.port}, {self.launcher.name}"

    def url(self, database: str = "postgres", **options: str) -> str:
        """Give the address of a database, with ``options`` as its query."""
        query = f"?{urlencode(options, quote_via=quote)}" if options else ""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{quote(database, safe='')}{query}"

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Open a connection where each statement commits by itself."""
        return psycopg.connect(self.url(database), autocommit=True)

    def create_database(self, name: str) -> str:
        """Create a database and give its address."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write settings down; most of them count from the next restart on."""
        lines = [
            "{} = '{}'\n".format(name, value.replace("'", "''")) for name, value in settings.items()
        ]
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(lines)

    def run(self) -> None:
        """Start the process and wait until it answers."""
        with self.log.open("a", encoding="utf-8") as log:
            self._process = self.launcher.start(
                [self.binaries.postgres, "-D", self.data], self.home, stdout=log, stderr=log
            )
        try:
            self._wait_for_answer(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process: politely, then firmly, then by force. Without one, do nothing."""
        if self._process is None:
            return
        for number, seconds in ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0)):
            self._process.send_signal(number)
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
            self._process = None
            return
        self.kill9()

    def kill9(self) -> None:
        """End all its processes at once, as a failing machine would; the data stay as they are."""
        process, self._process = self._process, None
        if process is None:
            return
        # Stopped first, it starts no more children while they are counted.
        process.send_signal(signal.SIGSTOP)
        children = tree_of(process.pid)
        process.kill()
        for child in children:
            _kill(child)
        process.wait(PATIENCE)
        _until(lambda: not any(child.alive() for child in children), f"the processes of {self}")

    def restart(self) -> None:
        """Start again on the same data and port, after a stop if it runs."""
        self.stop()
        self.run()

    def _wait_for_answer(self, process: subprocess.Popen[str]) -> None:
        """The socket is in a folder of its own: no other server can answer there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(
                    host=str(self.home), port=self.port, user=USER, dbname="postgres"
                ).close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None:
                    reason = f"it ended with status {process.returncode}"
                elif time.monotonic() > deadline:
                    reason = f"no answer in {PATIENCE:g} s: {error}"
                else:
                    time.sleep(0.02)
                    continue
            raise ServerFailed(f"{self} did not start: {reason}\n\n{self.last_words()}")

    def last_words(self) -> str:
        """Give the end of the log and where the rest of it is."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"from {self.log}:", *lines[-20:]])


class Standby(Server):
    """A server that follows another one, until it is promoted."""

    def promote(self) -> None:
        """Make it a server of its own that takes writes."""
        with self.connect() as connection:
            row = connection.execute("SELECT pg_promote(true, 30)").fetchone()
        if row != (True,):
            raise ServerFailed(f"{self} was not promoted in 30 s\n\n{self.last_words()}")


@contextmanager
def start(
    binaries: Binaries,
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    port: int | None = None,
    fast: bool = False,
) -> Iterator[Server]:
    """Run a new, empty server on a loopback port; ``folder`` gets its log.

    Anybody on this machine may connect, without a password. ``fast`` gives up what protects the
    data when the machine (not the server) fails; without it, a commit is on the disk.
    """
    with _home() as home:
        launcher = _make_data(binaries, home)
        number = port or free_port()
        server = Server(binaries, launcher, home, folder / f"postgres-{number}.log", number)
        server.configure(
            {
                **SETTINGS,
                **(FAST if fast else {}),
                **(settings or {}),
                **_place(server),
            }
        )
        with _running(server):
            yield server


@contextmanager
def standby(server: Server, settings: Mapping[str, str] | None = None) -> Iterator[Standby]:
    """Run a copy of a running server that follows it and can be read from."""
    program = server.binaries.pg_basebackup
    if program is None:
        raise ServerMissing(
            f"{server.binaries} has no pg_basebackup, which copies a server\n\n"
            "hint: choose another one from find_servers()"
        )
    with _home() as home:
        server.launcher.own(home)
        number = free_port()
        copy = Standby(
            server.binaries,
            server.launcher,
            home,
            server.log.parent / f"postgres-{number}.log",
            number,
        )
        problem = server.launcher.run(
            [program, "--pgdata", copy.data, "--dbname", server.url(), *_COPY], home
        )
        if problem is not None:
            raise ServerFailed(f"{server} could not be copied: {problem}")
        copy.configure({**(settings or {}), **_place(copy)})
        with _running(copy):
            yield copy


@contextmanager
def _running(server: Server) -> Iterator[None]:
    guard = Guard(server.home)
    try:
        server.run()
        yield
    finally:
        server.stop()
        guard.dismiss()


@contextmanager
def _home() -> Iterator[Path]:
    """A short folder for data and socket, gone afterwards."""
    place = tempfile.gettempdir()
    home = Path(tempfile.mkdtemp(prefix="pg-", dir=place if len(place) < _LONGEST_HOME else "/tmp"))
    try:
        yield home
    finally:
        shutil.rmtree(home)


def _make_data(binaries: Binaries, home: Path) -> Launcher:
    """Make the data by the first launcher that can, and give it: the server goes the same way."""
    tried: list[str] = []
    for launcher in launchers():
        launcher.own(home)
        problem = launcher.run(
            [binaries.initdb, "--pgdata", home / "data", "--username", USER, *_MAKE], home
        )
        if problem is None:
            return launcher
        tried.append(f"{launcher.name}: {problem}")
    raise ServerFailed(
        f"{binaries} could not make its data. Tried:\n\n"
        + "\n\n".join(f"- {one}" for one in tried)
        + "\n\nhint: run the tests as an ordinary user, keep the programs where everybody may "
        "read them, allow user namespaces, or name a running server with LAMPLIGHTER_TEST_POSTGRES"
    )


def _place(server: Server) -> dict[str, str]:
    return {"port": str(server.port), "unix_socket_directories": str(server.home)}


def _kill(process: Found) -> None:
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(f"waited {PATIENCE:g} s in vain for the end of {what}")
        time.sleep(0.01)
