"""`lamplighter submit`: hand in a job by the name of its type."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime
from typing import Any, cast

import click

from lamplighter import config
from lamplighter.app import App
from lamplighter.cli import output, reading, store
from lamplighter.cli.fitting import check_fit
from lamplighter.cli.program import load_app
from lamplighter.handle import Handle
from lamplighter.model.errors import UnknownType
from lamplighter.model.names import shown
from lamplighter.options import Priority


@click.command()
@click.argument("type", metavar="TYPE")
@click.argument("arguments", metavar="[JSON | NAME=VALUE...]", nargs=-1)
@click.option("--delay", metavar="DURATION", help="Run it this much later: 90, 15m, 2h, 1d.")
@click.option("--run-at", metavar="TIME", help="Run it then: an ISO time with its time zone.")
@click.option("--queue", help="Another queue than the type's own.")
@click.option("--priority", help="critical, high, normal or low.")
@click.option("--tenant", help="On whose behalf it runs.")
@click.option("--key", help="Idempotency key: the same submission again gives the same job.")
@click.option("--tag", "tags", multiple=True, help="What it should be found by; several times.")
@click.option("--metadata", metavar="JSON", help="What travels with it beside its arguments.")
@click.option("--timeout", metavar="DURATION", help="Time its handler has.")
@click.option(
    "--retry", metavar="JSON", help='Tries and pauses, as in {"max_attempts": 3, "fixed": 60}.'
)
@click.option("--app", "spec", metavar="MODULE:APP", help="Check against this program's types.")
@click.option("--force", is_flag=True, help="Submit even if no live worker knows the type.")
@store.store_options
def submit(
    *,
    type: str,
    arguments: tuple[str, ...],
    delay: str | None,
    run_at: str | None,
    queue: str | None,
    priority: str | None,
    tenant: str | None,
    key: str | None,
    tags: tuple[str, ...],
    metadata: str | None,
    timeout: str | None,
    retry: str | None,
    spec: str | None,
    url: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Submit a job and print its id.

    Arguments are one JSON object, `-` to read it from stdin, or NAME=VALUE each.

    Without --app, a live worker must know the type; its workers check the arguments.
    """
    if delay is not None and run_at is not None:
        raise click.UsageError("give --delay or --run-at, not both")
    options: dict[str, Any] = {
        "delay": None if delay is None else reading.duration("the delay", delay),
        "run_at": None if run_at is None else reading.instant("the time", run_at),
        "queue": queue,
        "priority": cast("Priority | None", priority),
        "tenant": tenant,
        "idempotency_key": key,
        "tags": tags or None,
        "metadata": reading.metadata(metadata),
        "timeout": None if timeout is None else reading.duration("the timeout", timeout),
        "retry": reading.retry(retry),
    }
    texts = (sys.stdin.read(),) if arguments == ("-",) else arguments
    reading.arguments(texts, {})  # what cannot be read is told before the store is asked
    app = _app(spec, url)
    if spec is None and not force:
        store.must_exist(app.settings)
    handle = store.run(_submit(app, type, texts, options, force=force))
    _print(handle, type, options["delay"], options["run_at"], as_json=as_json)


def _app(spec: str | None, url: str | None) -> App:
    if spec is None:
        return App(settings=config.load(url=url))
    app = load_app(spec)
    if url is not None:
        app.configure(dataclasses.replace(app.settings, url=url))
    return app


async def _submit(
    app: App, type: str, texts: tuple[str, ...], options: dict[str, Any], *, force: bool
) -> Handle[object]:
    async with app:
        if len(app.registry):
            schema = json.loads(app.registry.get(type).schema)
            arguments = reading.arguments(texts, schema)
        else:
            arguments = await _for_published(app, type, texts, force=force)
        return await app.submit(type, arguments, **options)


async def _for_published(
    app: App, type: str, texts: tuple[str, ...], *, force: bool
) -> dict[str, object]:
    """Read the arguments by what the workers say about the type."""
    engine = await app.engine()
    known = [row for row in await engine.inspector.types() if row.live_workers]
    versions = [row for row in known if row.name == type]
    if not versions and not force:
        names = ", ".join(sorted({row.name for row in known})) or "none"
        raise UnknownType(
            f"no live worker knows the job type {shown(type)}",
            hint=f"known to live workers: {names}. Start a worker that knows it, check against "
            "its program with --app MODULE:APP, or submit it all the same with --force",
            value=type,
        )
    schemas: list[dict[str, Any]] = [json.loads(row.schema) for row in versions]
    arguments = reading.arguments(texts, schemas[0] if schemas else {})
    if not force:
        check_fit(type, arguments, schemas)
    return arguments


def _print(
    handle: Handle[object],
    type: str,
    delay: float | None,
    run_at: datetime | None,
    *,
    as_json: bool,
) -> None:
    answer = "created" if handle.answer is None else handle.answer.value
    if as_json:
        output.print_json({"id": handle.id, "type": type, "answer": answer})
        return
    output.print_text(handle.id)
    if handle.existing:
        output.note(f"this submission was made before ({answer})")
    elif delay:
        output.note(f"submitted {type}, due in {output.span(delay)}")
    elif run_at is not None:
        output.note(f"submitted {type}, due {output.away(int(run_at.timestamp() * 1000))}")
    else:
        output.note(f"submitted {type}, due now")
