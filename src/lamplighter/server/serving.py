"""A process that serves: binds its address, answers until it is told to stop, and ends in peace."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any, cast

import uvicorn

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.application import application
from lamplighter.server.connections import KEEP_ALIVE, make_room, protocol
from lamplighter.server.route import Table
from lamplighter.server.routes import TABLE
from lamplighter.server.service import HttpService


def bound(host: str, port: int) -> socket.socket:
    """Bind the address, to learn now whether it is free."""
    with _named(host, port):
        return socket.create_server((host, port), family=_family(host), backlog=1024)


def reserved(host: str, port: int) -> socket.socket:
    """Bind the address for processes that will share it."""
    with bound(host, port) as taken:
        # An address that others share could be shared without asking them: now it is free.
        address = taken.getsockname()
    return shared(*address[:2])


def shared(host: str, port: int) -> socket.socket:
    """Bind an address that is reserved; nothing comes there before somebody serves.

    Each process has a socket of its own, so that the system deals connections out evenly: of one
    socket, whoever wakes first takes all that wait.
    """
    made = socket.socket(_family(host))
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with _named(host, port):
            made.bind((host, port))
    except BaseException:
        made.close()
        raise
    return made


@contextlib.contextmanager
def _named(host: str, port: int) -> Generator[None]:
    """Say which address it is that cannot be used."""
    try:
        yield
    except (OSError, OverflowError) as error:
        raise InvalidOption(
            f"the address {shown(f'{host}:{port}')} cannot be used: {error}",
            hint="give another --port (0 takes any that is free), or an address of this machine",
            value=f"{host}:{port}",
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def url_of(listener: socket.socket) -> str:
    """Return the address under which a bound service is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    service: HttpService,
    listener: socket.socket,
    on_ready: Callable[[], None],
    *,
    parent: int | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, or until the file ``parent`` comes to its end.

    Then no more connections are taken, and requests that are under way have the grace to come to
    their end. A second signal ends them at once.
    """
    running = Running(service, listener, on_ready=on_ready)
    await running.open()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, running.stop)
    if parent is not None:
        loop.add_signal_handler(signal.SIGINT, _leave_it_to_the_parent)
        loop.add_reader(parent, running.orphaned, parent)
    try:
        await running.run()
    finally:
        # All is done: a late signal must not make a good end look like a bad one.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        for number in signals:
            loop.remove_signal_handler(number)
        await service.close()


def _leave_it_to_the_parent() -> None:
    """Ctrl-C reaches all processes of a terminal; the parent passes it on."""


class Running:
    """A service at its address, from its opening to its end."""

    def __init__(
        self,
        service: HttpService,
        listener: socket.socket,
        table: Table = TABLE,
        *,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self._service = service
        self._listener = listener
        self._server = _Server(_config(service, table), service, on_ready)

    async def open(self) -> None:
        """Learn whether the store can be reached, and make room for connections."""
        make_room(self._service.settings.http_connections)
        await self._service.open()

    async def run(self) -> None:
        """Serve until stopped."""
        await self._server.serve(sockets=[self._listener])

    def stop(self) -> None:
        """End when what is under way is done; asked again, at once."""
        if self._server.should_exit:
            self._server.force_exit = True
            for connection in tuple(self._server.server_state.connections):
                cast("Any", connection).transport.abort()
        self._server.should_exit = True

    def orphaned(self, parent: int) -> None:
        """End, because whoever looks after this process has gone."""
        asyncio.get_running_loop().remove_reader(parent)
        self._server.should_exit = True


def _config(service: HttpService, table: Table) -> uvicorn.Config:
    settings = service.settings
    most = settings.http_connections
    return uvicorn.Config(
        application(service, table),
        http=protocol(most, settings.http_header_timeout, settings.http_write_timeout),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )


class _Server(uvicorn.Server):
    """Leaves the signals to us: told to stop, a process ends with code 0."""

    def __init__(
        self, config: uvicorn.Config, service: HttpService, on_ready: Callable[[], None] | None
    ) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let those who listen to changes go first: they would stay for as long as they may."""
        self._service.events.close()
        await super().shutdown(sockets)
