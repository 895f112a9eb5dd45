"""Who is measured, on which store, and in which folder under `build` it is installed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A peer; see `with_<name>.py`."""

    store: str
    environment: str = "peers"
    """Where its Python packages are: some cannot share an environment."""
    node: str = ""
    """Where its Node packages are, if it has such."""


ROSTER = {
    "pgqueuer": Entry("postgres"),
    "procrastinate": Entry("postgres"),
    "bullmq": Entry("redis", node="bullmq"),
    "dramatiq": Entry("redis"),
    "huey": Entry("redis"),
    "taskiq": Entry("redis", environment="peers-taskiq"),
    "saq": Entry("redis"),
    "arq": Entry("redis", environment="peers-arq"),
    "celery": Entry("redis"),
    "rq": Entry("redis"),
}
"""All of them, in the order in which they are shown."""

STORES = ("postgres", "redis")
