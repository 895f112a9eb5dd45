"""What the commands share: the options for the store, opening it, and who is asking."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from lamplighter import config
from lamplighter.app import App
from lamplighter.client import unknown
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import JobRecord
from lamplighter.model.names import DEFAULT_TENANT
from lamplighter.port.store import Engine

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_SQLITE = "sqlite:///"


def url_option(command: Command) -> Command:
    """Let the user say which store."""
    return click.option(
        "--url", metavar="URL", help="Address of the store, instead of LAMPLIGHTER_URL."
    )(command)


def store_options(command: Command) -> Command:
    """Let the user say which store, and whether a program will read the answer."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    return url_option(as_json(command))


def operator_options(command: Command) -> Command:
    """Let the user say who wants it and why; both are kept in the store."""
    by = click.option("--by", metavar="NAME", help="Who asks for it.  [default: you@this-host]")
    reason = click.option("--reason", metavar="TEXT", default="", help="Why; others will see it.")
    return by(reason(command))


def tenant_option(command: Command) -> Command:
    """Let the user say whose schedule is meant."""
    return click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose it is.")(
        command
    )


def operator(given: str | None) -> str:
    """Name who is asking: what was given, or the user and the host."""
    if given:
        return given
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end."""
    return asyncio.run(work)


@asynccontextmanager
async def opened(url: str | None, *, create: bool = False) -> AsyncGenerator[Engine]:
    """Open the store. A command that only looks does not make a new one."""
    settings = config.load(url=url)
    if not create:
        refuse_to_create(settings.url)
    engine = connect(settings.url, deadline=settings.store_deadline)
    await engine.open(create=create)
    try:
        yield engine
    finally:
        await engine.close()


def must_exist(settings: Settings) -> None:
    """Raise if there is no such store: for commands that go on with an app, which makes one."""

    async def look() -> None:
        async with opened(settings.url):
            pass

    run(look())


def run_app(url: str | None, work: Callable[[App], Awaitable[T]], *, create: bool = False) -> T:
    """Run a command's work with an app on the store, which is made only if ``create`` says so."""
    settings = config.load(url=url)
    if not create:
        must_exist(settings)

    async def main() -> T:
        async with App(settings=settings) as app:
            return await work(app)

    return run(main())


def refuse_to_create(url: str) -> None:
    """Raise if the store would be a new one: there is nothing to see in it."""
    path = Path(url.removeprefix(_SQLITE))
    # What stands in a folder that is closed to us cannot be seen; opening the store says so.
    visible = url.startswith(_SQLITE) and os.access(path.parent, os.X_OK)
    if visible and not os.path.lexists(path):
        raise StoreUnreachable(
            f"there is no store `{path}` yet",
            hint="name another one with --url or LAMPLIGHTER_URL; `lamplighter dev`, `worker`, "
            "`serve` and `migrate` make a new one",
            value=str(path),
        )


async def job(engine: Engine, job_id: str) -> JobRecord:
    """Read one job."""
    record = await engine.inspector.job(job_id)
    if record is None:
        raise unknown(job_id)
    return record
