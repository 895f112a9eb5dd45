"""Options of the processes that run for long: where their metrics are, and how their lines look."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lamplighter import config
from lamplighter.observability import endpoint

LOOPBACK = "127.0.0.1"

Command = TypeVar("Command", bound=Callable[..., Any])


def observing_options(command: Command) -> Command:
    """Let the user say how a process is observed."""
    port = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65_535),
        help="Serve metrics on this port, for this machine alone; 0 takes any that is free.",
    )
    log_format = click.option(
        "--log-format",
        type=click.Choice(config.CHOICES["log_format"]),
        help="Lines for people or for programs.  [default: console]",
    )
    return port(log_format(command))


def listener(port: int | None, *, shared: bool = False) -> socket.socket | None:
    """Bind the port for metrics, if there is to be one."""
    return None if port is None else endpoint.bound(LOOPBACK, port, shared=shared)
