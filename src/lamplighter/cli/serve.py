"""`lamplighter serve`: the scheduler as an HTTP service."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamplighter import config
from lamplighter.app import App
from lamplighter.cli import output, store
from lamplighter.cli.program import load_app
from lamplighter.model.errors import InvalidOption

if TYPE_CHECKING:
    from lamplighter.server.service import HttpService

_LIBRARIES = frozenset({"anyio", "h11", "jsonschema_rs", "starlette", "uvicorn"})


@click.command()
@click.argument("spec", metavar="[MODULE:APP]", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 takes any that is free.",
)
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Ask for one of the bearer keys in this file, one per line.",
)
@store.store_options
def serve(
    spec: str | None,
    host: str,
    port: int,
    key_file: Path | None,
    url: str | None,
    *,
    as_json: bool,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    Jobs are checked against what live workers have published; with MODULE:APP also against the
    types of that program. Without --key-file only programs on this machine can be served.
    """
    try:
        from lamplighter.server import auth, serving
        from lamplighter.server.service import HttpService
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise InvalidOption(
            f"the HTTP service needs `{error.name}`, which is not installed",
            hint="pip install 'lamplighter[server]'",
            value=error.name,
        ) from error
    keys = [] if key_file is None else auth.read_keys(key_file)
    auth.check_address(host, keys)
    service = HttpService(_app(spec, url), keys)
    with serving.bound(host, port) as listener:
        store.run(_serve(service, listener, as_json=as_json))


async def _serve(service: HttpService, listener: socket.socket, *, as_json: bool) -> None:
    from lamplighter.server import serving

    address = serving.url_of(listener)

    def tell() -> None:
        if as_json:
            output.tell(json.dumps({"url": address}))
        else:
            output.tell(f"serving on {address}; its description is at {address}/v1/openapi.json")

    await serving.serve(service, listener, tell)


def _app(spec: str | None, url: str | None) -> App:
    if spec is None:
        return App(settings=config.load(url=url))
    app = load_app(spec)
    if url is not None:
        app.configure(dataclasses.replace(app.settings, url=url))
    return app
