"""Code around every handler: the one protocol by which a program extends how jobs are run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, cast

from lamplighter.model.errors import InvalidHandler
from lamplighter.model.job import Claim
from lamplighter.model.names import shown
from lamplighter.model.outcome import Outcome

CallNext = Callable[[], Awaitable[Outcome]]
"""Runs what is further inside, in the end the handler, and gives its outcome. Never raises."""


class Middleware(Protocol):
    """What runs around each handler of a program, on the event loop of its process."""

    async def __call__(self, claim: Claim, call_next: CallNext, /) -> Outcome:
        """Run the job, or do not, and say what came of it.

        An exception is a failed attempt, whatever the handler had come to; Reject and Snooze
        mean what they mean in a handler.
        """
        ...


def check(middleware: object) -> Middleware:
    """Refuse what cannot be called as a middleware."""
    call: object = middleware
    if not inspect.isroutine(middleware) and callable(middleware):
        call = type(middleware).__call__
    if isinstance(middleware, type) or not inspect.iscoroutinefunction(call):
        raise InvalidHandler(
            f"{shown(middleware)} is no middleware",
            hint="give an `async def log(claim: Claim, call_next: CallNext) -> Outcome`, or an "
            "object with such a `__call__`",
            value=middleware,
        )
    return cast("Middleware", middleware)


async def call_through(
    middleware: Sequence[Middleware],
    claim: Claim,
    handler: CallNext,
    raised: Callable[[BaseException], Outcome],
) -> Outcome:
    """Run the handler inside of all middleware, the first of which is the outermost.

    ``raised`` says what an exception in one of them comes to.
    """
    if not middleware:
        return await handler()

    async def call_next() -> Outcome:
        return await call_through(middleware[1:], claim, handler, raised)

    try:
        return _checked(middleware[0], await middleware[0](claim, call_next))
    except BaseException as error:  # noqa: BLE001 - no middleware may end its process
        return raised(error)


def _checked(middleware: Middleware, outcome: object) -> Outcome:
    if isinstance(outcome, Outcome):
        return outcome
    raise InvalidHandler(
        f"the middleware {shown(middleware)} returned {shown(outcome)}, which is no outcome",
        hint="return what `await call_next()` gave, or an outcome of your own",
        value=outcome,
    )
