"""What a child has to offer: the queues it serves, the work it claims, the types it tells of."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

from lamplighter.config import Settings
from lamplighter.model.job import ALONE
from lamplighter.model.retry import Retry
from lamplighter.model.stride import QueueStride
from lamplighter.registry import Registry
from lamplighter.worker.kinds import Kinds
from lamplighter.worker.link import Begin, Hello

Work = tuple[Callable[[], tuple[str, ...]], tuple[str, ...]]
"""Types to claim, and the requirements that are met, whatever the versions."""


def work_of(kinds: Kinds, *, alone: bool) -> list[Work]:
    """Return what each claimer of a child asks for; ``alone``: its jobs run alone."""
    if not alone:
        return [(kinds.shared, ("",))]
    # Suspects of types that share a process have a way of their own: no backlog is before them.
    return [(kinds.alone, ("", ALONE)), (kinds.shared, (ALONE,))]


def hello(registry: Registry, queues: QueueStride, settings: Settings) -> Hello:
    """Return what a child that is ready says of itself."""
    retries: dict[str, str] = {}
    for name in registry.names():
        retry = registry.get(name).retry
        if retry.function is not None:
            # Functions do not travel; the number of attempts does.
            retry = Retry(max_attempts=retry.max_attempts, no_retry_on=retry.no_retry_on)
        retries[name] = retry.to_json()
    # With the times that hold here, for whoever asks why a job still runs.
    times = {"timeout": settings.timeout, "hard_after": settings.hard_after}
    types = tuple(
        {**dataclasses.asdict(info), "options": {**times, **info.options}}
        for info in registry.infos()
    )
    return Hello(os.getpid(), queues.queues, types, retries)


def queues_of(begin: Begin, registry: Registry) -> QueueStride:
    """Return the queues asked for, or those of the program's types, each with equal right."""
    if begin.queues:
        return QueueStride(begin.queues, begin.weights)
    names = tuple(sorted({registry.get(name).queue for name in registry.names()} | {"default"}))
    return QueueStride(names, None if len(names) == 1 else (1,) * len(names))
