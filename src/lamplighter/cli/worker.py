"""`lamplighter worker`: run a program's jobs, until told to stop."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from lamplighter import coordinator
from lamplighter.cli import observing, output, reading, store
from lamplighter.cli.feed import Printer
from lamplighter.cli.program import declarer, load_worker_app
from lamplighter.config import Settings
from lamplighter.coordinator.outlook import Lookout
from lamplighter.fleet import Fleet
from lamplighter.model.errors import InvalidOption
from lamplighter.observability import endpoint, events, logs
from lamplighter.port.store import Engine
from lamplighter.service import Service
from lamplighter.worker import autoscale as ranges
from lamplighter.worker import queues as queue_list
from lamplighter.worker.supervisor import Supervisor, no_services, run_until_signalled

FAILED = 1


Command = TypeVar("Command", bound=Callable[..., Any])


def process_options(command: Command) -> Command:
    """Let the user say what a worker serves, and with how many processes and slots."""
    options = (
        click.option("--queues", metavar="LIST", help="`a,b`: a before b; `a=3,b=1`: by weight."),
        click.option("--processes", type=int, help="Child processes.  [default: cores, at most 4]"),
        click.option("--children", type=int, hidden=True, help="Older name of --processes."),
        click.option(
            "--autoscale", metavar="LOW..HIGH", help="More children under load, fewer without."
        ),
        click.option("--slots", type=int, help="Jobs that one child runs at once.  [default: 50]"),
        click.option(
            "--process-slots",
            type=int,
            help="Beside these, jobs in processes of their own.  [default: twice the cores]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def process_settings(
    *,
    processes: int | None,
    children: int | None,
    autoscale: str | None,
    slots: int | None,
    process_slots: int | None,
) -> dict[str, int | None]:
    """Turn these options into settings; those that were not given stay None."""
    fixed = children if processes is None else processes
    most: int | None = None
    if autoscale is not None:
        lowest, highest = ranges.parse(autoscale)
        if fixed is not None:
            raise InvalidOption(
                f"--processes {fixed} and --autoscale {autoscale} contradict each other",
                hint=f"leave one out; `--autoscale {lowest}..{highest}` begins with {lowest}",
                value=autoscale,
            )
        fixed, most = lowest, highest
    return {
        "children": fixed,
        "children_most": most,
        "slots": slots,
        "process_slots": process_slots,
    }


@click.command()
@click.argument("spec", metavar="MODULE:APP")
@process_options
@click.option(
    "--lease", metavar="DURATION", help="How long a claim holds unrenewed.  [default: 30s]"
)
@click.option(
    "--grace", metavar="DURATION", help="Time for running jobs after SIGTERM.  [default: 30s]"
)
@click.option(
    "--no-coordinator", is_flag=True, help="Leave rescue, retention and schedules to others."
)
@observing.observing_options
@click.option("-v", "--verbose", is_flag=True, help="Print a line for every job.")
@store.store_options
def worker(
    *,
    spec: str,
    queues: str | None,
    lease: str | None,
    grace: str | None,
    metrics_port: int | None,
    log_format: str | None,
    url: str | None,
    no_coordinator: bool,
    verbose: bool,
    as_json: bool,
    **processes: Any,
) -> None:
    """Run the jobs of a program until SIGTERM or Ctrl-C.

    The first signal lets running jobs finish within the grace, a second one hurries. SIGHUP
    replaces the children by fresh ones that read the program anew; no job is disturbed. Events are
    printed to stdout, a line each; when their reader has gone, the worker ends too.
    """
    output.never_block(as_json=as_json)
    asked = None if queues is None else queue_list.parse(queues)
    app = load_worker_app(
        spec,
        url=url,
        lease=None if lease is None else reading.duration("the lease", lease),
        grace=None if grace is None else reading.duration("the grace", grace),
        log_format=log_format,
        **process_settings(**processes),
    )
    settings = app.settings
    logs.install(settings.log_format)
    printer = Printer(speed=settings.speed, as_json=as_json, log_format=settings.log_format)
    chosen = no_services if no_coordinator else coordinator.services

    def services(engine: Engine, settings: Settings, fleet: Fleet) -> Sequence[Service]:
        own = (declarer(engine, app, fleet), Lookout(engine, fleet))
        return (*chosen(engine, settings, fleet), *own)

    listener = observing.listener(metrics_port)
    work = _work(
        spec, settings, printer, listener, verbose=verbose, queues=asked, services=services
    )
    for text in () if asked is None else queue_list.misfits(asked.queues, app.registry):
        printer.on_event(events.WORKER_WARNED, {"text": text})
    if not store.run(work):
        sys.exit(FAILED)


async def _work(
    spec: str,
    settings: Settings,
    printer: Printer,
    listener: socket.socket | None,
    *,
    verbose: bool,
    **parts: Any,
) -> bool:
    """Work until told to stop; False when it was only told by the end of its reader."""
    asked = True
    # Asking the supervisor for events makes every child tell of every job.
    on_event = printer.on_event if verbose else None
    stop_listening = None if verbose else events.listen(printer.on_event)
    supervisor = Supervisor(spec, settings, on_event=on_event, **parts)

    def drain_unless_draining() -> None:
        nonlocal asked
        if not supervisor.draining:
            asked = False
            supervisor.drain()

    # What handlers print would fail their jobs, one after the other.
    printer.on_closed = drain_unless_draining
    try:
        async with _exposed(supervisor, listener, printer):
            await run_until_signalled(supervisor)
    finally:
        if stop_listening is not None:
            stop_listening()
    return asked


@asynccontextmanager
async def _exposed(
    supervisor: Supervisor, listener: socket.socket | None, printer: Printer
) -> AsyncGenerator[None]:
    """Serve the metrics of a worker while it works."""
    if listener is None:
        yield
        return
    served = endpoint.Endpoint(listener, supervisor.metrics)
    await served.start()
    printer.on_event(events.METRICS_SERVED, {"url": served.url})
    try:
        yield
    finally:
        await served.close()
