"""A process that serves: binds its address, answers until it is told to stop, and ends in peace."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Generator

import uvicorn

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.application import application
from lamplighter.server.connections import KEEP_ALIVE, make_room, protocol
from lamplighter.server.service import HttpService

_HEAD = 128 * 1024
"""Bytes of a head that are read at all; the gate refuses much smaller ones with a reason."""


def bound(host: str, port: int) -> socket.socket:
    """Bind the address, to learn now whether it is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise InvalidOption(
            f"the address {shown(f'{host}:{port}')} cannot be used: {error}",
            hint="give another --port (0 takes any that is free), or an address of this machine",
            value=f"{host}:{port}",
        ) from error


def url_of(listener: socket.socket) -> str:
    """Give the address under which a bound service is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    service: HttpService, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Then no more connections are taken, and requests that are under way have the grace to come to
    their end. A second signal ends them at once.
    """
    make_room(service.settings.http_connections)
    await service.open()
    server = _Server(_config(service))
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, server.stop)
    try:
        on_ready()
        await server.serve(sockets=[listener])
    finally:
        # All is done: a late signal must not make a good end look like a bad one.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        for number in signals:
            loop.remove_signal_handler(number)
        await service.close()


def _config(service: HttpService) -> uvicorn.Config:
    settings = service.settings
    most = settings.http_connections
    return uvicorn.Config(
        application(service),
        http=protocol(most, settings.http_header_timeout),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        # One more than the protocol lets in: all are busy, and this one is told so.
        limit_concurrency=most + 1,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        h11_max_incomplete_event_size=_HEAD,
    )


class _Server(uvicorn.Server):
    """Leaves the signals to us: told to stop, a process ends with code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def stop(self) -> None:
        """End when what is under way is done; asked again, at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
