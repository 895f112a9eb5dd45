"""The console of a program under development, served beside its worker."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path

from lamplighter import runtime
from lamplighter.app import App
from lamplighter.model.errors import InvalidOption
from lamplighter.server import serving
from lamplighter.server.auth import Principal
from lamplighter.server.route import Table
from lamplighter.server.routes import TABLE, dev
from lamplighter.server.service import HttpService

HOST = "127.0.0.1"
FIRST_PORT = 8080
PORTS = 20
"""So many ports are tried before any is taken that is free."""
PATIENCE = 2.0
"""Seconds that requests have to come to their end."""


class Site:
    """Serves one program to whoever has a link that was made here, and to tokens of its store."""

    def __init__(self, app: App, stage: dev.Stage, port: int | None) -> None:
        self._listener = bound(port)
        self._service = HttpService(app, tokens=True)
        self._service.in_development = True
        table = Table([*TABLE, *dev.routes(stage)])
        self._running = serving.Running(self._service, self._listener, table)
        self._task: asyncio.Task[None] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def link(self) -> str:
        """Make a link to the console that logs a browser in, once and within some minutes."""
        code = self._service.codes.issue(Principal(name="dev"))
        return f"{serving.url_of(self._listener)}/#code={code}"

    async def start(self, on_crash: Callable[[BaseException], None]) -> None:
        """Begin to serve."""
        await self._running.open()
        self._task = runtime.spawn(self._running.run(), name="site", on_crash=on_crash)

    async def stop(self) -> None:
        """Let requests come to their end, but do not wait for long; then let go of the store."""
        self._running.stop()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=PATIENCE)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._service.close()
        self._listener.close()
        if self._folder is not None:
            self._folder.cleanup()

    async def show(self) -> None:
        """Open the console in a browser."""
        # Everybody on this machine can read what programs are started with, but not this file.
        self._folder = tempfile.TemporaryDirectory(prefix="lamplighter-")
        page = Path(self._folder.name) / "console.html"
        leads = f'<meta http-equiv="refresh" content="0; url={escape(self.link())}">'
        page.write_text(f"<!doctype html>{leads}<title>Lamplighter</title>\n", encoding="utf-8")
        await asyncio.to_thread(webbrowser.open, page.as_uri())


def bound(port: int | None) -> socket.socket:
    """Bind the port, or if none was given the first that is free."""
    if port is not None:
        return serving.bound(HOST, port)
    for each in range(FIRST_PORT, FIRST_PORT + PORTS):
        try:
            return serving.bound(HOST, each)
        except InvalidOption:
            continue
    return serving.bound(HOST, 0)
