"""`lamplighter serve`: the scheduler as an HTTP service."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lamplighter import config, runtime
from lamplighter.app import App
from lamplighter.cli import extra, observing, output, store
from lamplighter.cli.admission import Admission, admission_options
from lamplighter.cli.program import load_app
from lamplighter.model.errors import InvalidOption, LamplighterError
from lamplighter.observability import logs

if TYPE_CHECKING:
    from lamplighter.server.processes import Start
    from lamplighter.server.service import HttpService
FAILED = 1


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
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that share the work; one that dies is replaced.",
)
@admission_options
@observing.observing_options
@store.store_options
def serve(
    *,
    spec: str | None,
    host: str,
    port: int,
    processes: int,
    metrics_port: int | None,
    log_format: str | None,
    url: str | None,
    as_json: bool,
    **admission: Any,
) -> None:
    """Serve the HTTP API and the console until SIGTERM or Ctrl-C.

    Jobs are checked against what live workers have published; with MODULE:APP also against the
    types of that program. Without --require-token or one of the options below it only programs
    on this machine can be served.
    """
    output.never_block(as_json=as_json)
    with extra.server():
        from lamplighter.server import loop, serving

        admits = Admission(**admission)
        admits.check(host)

    telling = _Telling(config.load(log_format=log_format).log_format, metrics_port, as_json)
    if processes > 1 and metrics_port == 0:
        raise InvalidOption(
            f"{processes} processes cannot share any port that is free",
            hint="name the port: --metrics-port 9101",
            value=metrics_port,
        )

    def make(secret: str = "") -> HttpService:
        service = admits.service(_app(spec, url, secret, log_format))
        logs.install(service.settings.log_format)
        service.expose(observing.listener(metrics_port, shared=processes > 1))
        return service

    if processes > 1:
        _serve_in_several(processes, host, port, make, telling)
        return
    service = make()
    with serving.bound(host, port) as listener:
        telling = dataclasses.replace(telling, metrics_port=service.metrics_port)
        tell = partial(telling.tell, serving.url_of(listener))
        loop.run(serving.serve(service, listener, tell))


def _serve_in_several(
    count: int, host: str, port: int, make: Callable[[str], HttpService], telling: _Telling
) -> None:
    """Serve in so many processes; each makes its own service, behind one address."""
    from lamplighter.server import loop, processes, serving

    settings = config.load()
    # Each of them has to read the cursors of the others.
    secret = settings.http_secret or f"{runtime.random_bits(256):064x}"
    # Elsewhere, sockets that share an address do not share the connections.
    apart = sys.platform == "linux"

    def work(start: Start) -> int:
        try:
            service = make(secret)
            with serving.shared(*address) if apart else listener as own:
                loop.run(serving.serve(service, own, start.on_ready, parent=start.parent))
        except LamplighterError as error:
            output.note(f"error: {error.cause}\n\nhint: {error.hint}")
            return FAILED
        return 0

    with serving.reserved(host, port) if apart else serving.bound(host, port) as listener:
        address = listener.getsockname()[:2]
        tell = partial(telling.tell, serving.url_of(listener))
        parent = processes.Parent(count, work, grace=settings.grace, tell=output.note)
        code = parent.run(tell)
    if code:
        sys.exit(code)


@dataclasses.dataclass(frozen=True, slots=True)
class _Telling:
    """How to say where the service is."""

    log_format: str
    metrics_port: int | None
    as_json: bool

    def tell(self, address: str) -> None:
        """Say it, in one line."""
        from lamplighter.server import assets

        port, places = self.metrics_port, {"url": address}
        text = f"serving on {address}"
        # A checkout may have none: the console is built apart.
        if assets.built():
            places["console"] = f"{address}/"
            text += ", where a browser shows the console"
        text += f"; its description is at {address}/v1/openapi.json"
        if port is not None:
            places["metrics"] = f"http://{observing.LOOPBACK}:{port}/metrics"
            text += f", metrics are at {places['metrics']}"
        if self.log_format == "json":
            at = logs.timestamp(runtime.now_ms() / 1000)
            head = {"ts": at, "level": "info", "logger": "lamplighter.serve", "event": "log"}
            output.tell(logs.line_of({**head, "message": text, **places}))
        else:
            output.tell(json.dumps(places) if self.as_json else text)


def _app(spec: str | None, url: str | None, secret: str, log_format: str | None) -> App:
    app = App(settings=config.load(url=url)) if spec is None else load_app(spec)
    settings = app.settings
    app.configure(
        dataclasses.replace(
            settings,
            url=url or settings.url,
            # Whoever asks is told that the store is away before their time is over.
            store_deadline=min(settings.store_deadline, settings.http_timeout / 2),
            http_secret=settings.http_secret or secret,
            log_format=log_format or settings.log_format,
        )
    )
    return app
