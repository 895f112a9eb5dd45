"""How engines may differ. Whatever is not declared here must be the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can and cannot do; the docs table is made from this."""

    name: str
    many_machines: bool
    """Processes on several machines may share one store."""
    push_wakeup: bool
    """Waiting workers are told of new work without polling."""
    durable_submit: bool
    """An acknowledged submission survives a crash of the machine."""
    loss_window: str
    """In words: when an acknowledged job can be lost."""
    max_batch: int
    """Largest number of jobs one call may carry."""
    roles: bool = False
    """Users of the database may be limited to running jobs, or to looking at them."""
    shards: int = 1
    """Parts the store is divided into. Each keeps the whole contract for itself: order, fairness,
    quotas and hand-out numbers are those of one part, and a call is one write in each part."""
