"""How much a search may cost: steps, each of them about a microsecond of work.

Calendars come from callers, and some name instants that are very far apart or hard to find. What
is asked of a calendar from outside opens a budget, all searches below it spend from it, and one
that has spent it all is given up: nobody else has to wait for it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from lamplighter.model.errors import TooCostly

STEPS = 7_000
"""Steps for one question: some cost more than others, and all of them at most about 10 ms."""


class _Budget:
    """What is left of it."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps


_budget: ContextVar[_Budget | None] = ContextVar("schedule_effort", default=None)


@contextmanager
def bounded(steps: int = STEPS) -> Generator[None]:
    """Let all searches within this spend so much together; within another budget, spend from it."""
    if _budget.get() is not None:
        yield
        return
    with apart(steps):
        yield


@contextmanager
def apart(steps: int = STEPS) -> Generator[None]:
    """Let searches within this spend so much, whatever is left to the one around it.

    For what is searched for once and kept: it is not the fault of the question that came first.
    """
    token = _budget.set(_Budget(steps))
    try:
        yield
    finally:
        _budget.reset(token)


def spend(steps: int = 1) -> None:
    """Spend some steps, or give the search up."""
    budget = _budget.get()
    if budget is None:
        return
    budget.left -= steps
    if budget.left < 0:
        raise TooCostly(
            "the calendar is too costly: a great number of days was looked at, and none has the "
            "instant that was looked for",
            hint="check INTERVAL against the BY… parts, write it with a coarser FREQ, or name "
            "fewer instants and exclusions",
        )


def left() -> int | None:
    """Return how many steps are left; None: nobody counts them."""
    budget = _budget.get()
    return None if budget is None else budget.left
