"""Write plans, so that one which cannot be written does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.port.schedules import Fired, Firing
from lamplighter.port.store import Engine

RUNS = 500
"""Runs in one call, unless one plan has more: a store may have one writer only."""


def portions(firings: Sequence[Firing]) -> Iterator[list[Firing]]:
    """Cut plans into portions of bounded work."""
    portion: list[Firing] = []
    runs = 0
    for firing in firings:
        more = len(firing.runs)
        if portion and runs + more > RUNS:
            yield portion
            portion, runs = [], 0
        portion.append(firing)
        runs += more
    if portion:
        yield portion


async def write(
    engine: Engine, firings: Sequence[Firing], *, service: str
) -> list[tuple[Firing, Fired]]:
    """Write plans, all in one call if possible, and give each that was written with its answer.

    Others are told as errors of the ``service``. A store that is away is the caller's matter.
    """
    try:
        answers = await engine.schedules.fire(firings)
        return list(zip(firings, answers, strict=True))
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - find the plan that cannot be written
        if len(firings) == 1:
            complain(service, firings[0].tenant, firings[0].id, error)
            return []
    return [pair for one in firings for pair in await write(engine, [one], service=service)]


def complain(service: str, tenant: str, schedule: str, error: Exception) -> None:
    """Tell that one schedule could not be dealt with."""
    events.emit(
        events.SERVICE_ERROR,
        service=service,
        error=error,
        expected=False,
        tenant=tenant,
        schedule=schedule,
    )
