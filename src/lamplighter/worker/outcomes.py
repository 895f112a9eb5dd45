"""What a handler's end comes to: its return, its exception, or its being stopped."""

from __future__ import annotations

from lamplighter.model.job import ErrorInfo
from lamplighter.model.outcome import (
    Cancelled,
    Failed,
    Misfit,
    Outcome,
    Reject,
    Rejected,
    Released,
    Snooze,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.registry import DoesNotFit, NotJson
from lamplighter.worker import failure
from lamplighter.worker.run import Run, Stop


def returned(run: Run, value: object) -> Outcome | None:
    """The handler came to its end, so its effect happened, even if it had been told to stop."""
    if run.stop is Stop.LOST:
        return None
    result, note = run.type.encode_result(value)
    if note is not None and run.redact is not None:
        note = run.redact(note)
    return Succeeded(result, note)


def raised(run: Run, error: BaseException) -> Outcome | None:
    """The handler ended in an exception."""
    if run.stop is Stop.LOST:
        return None
    try:
        return _classified(run, error)
    except BaseException:  # noqa: BLE001 - what a handler raises may be of any make
        return Failed(failure.describe(error, run.redact), error)


def unreadable(run: Run, error: BaseException) -> Outcome:
    """The handler could not even be called with what was stored."""
    match error:
        case NotJson():
            return Rejected("arguments are not JSON", failure.plain(error, run.redact))
        case DoesNotFit():
            return Misfit(failure.plain(error, run.redact))
        case _:
            return Failed(failure.describe(error, run.redact), error)


def stopped(run: Run) -> Outcome | None:
    """The handler ended because it was told to."""
    match run.stop:
        case Stop.LOST | None:
            return None
        case Stop.CANCEL:
            return Cancelled()
        case Stop.TIMEOUT:
            return TimedOut(out_of_time(run))
        case Stop.DRAIN:
            return Released(started=run.entered)


def out_of_time(run: Run, *, killed: bool = False) -> ErrorInfo:
    """Say which of its times is over."""
    if run.type.stalled_after is not None and is_stalled(run):
        return failure.stalled(run.type.stalled_after, killed=killed)
    return failure.timed_out(run.timeout, killed=killed)


def is_stalled(run: Run) -> bool:
    """Tell whether it ends for lack of progress, before its timeout."""
    return 0 < run.soft_end < run.started_at + run.timeout


def _classified(run: Run, error: BaseException) -> Outcome | None:
    if isinstance(error, Reject):
        return Rejected(failure.text_of(error.reason, "reason", run.redact), exception=error)
    if isinstance(error, Snooze) and _is_delay(error.delay):
        return Snoozed(float(error.delay))
    if run.stop is not None:
        return stopped(run)
    return Failed(failure.describe(error, run.redact), error)


def _is_delay(delay: object) -> bool:
    """Users may raise Snooze with anything; what is no delay makes the attempt a failure."""
    return isinstance(delay, (int, float)) and 0 <= delay <= LONGEST_DELAY
