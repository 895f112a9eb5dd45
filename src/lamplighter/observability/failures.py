"""Failed attempts in the log, through `logging`, and no more of them than somebody can read.

The logger is `lamplighter.jobs`: a job that will run again is a warning, one that is dead an error.
Of attempts of one type that fail for the same cause, the first few of each minute are logged in
full; of the others only how many they were. Messages and tracebacks come from the store's own
record of the failure, so that the values of secret arguments are hidden in them; arguments are
never logged.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache

from lamplighter import runtime
from lamplighter.model.job import ErrorInfo, Job, JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.observability import logs

log = logging.getLogger("lamplighter.jobs")

IN_FULL = 5
"""Failures of one cause that are logged in full within a window."""
WINDOW = 60.0
"""Seconds."""
CAUSES = 1_000
"""Causes that are told apart; those that were met first are forgotten first."""

_FAILURES = frozenset({"failed", "timed_out", "rejected", "abandoned"})


@dataclass(slots=True)
class _Cause:
    """How often something has gone wrong in its present window."""

    since: float
    text: str
    logged: int = 0
    held_back: int = 0


class FailureLog:
    """Logs what attempts came to, as far as they failed; one for a process: see `process_log`.

    Who writes to it ticks it now and then, and closes it in the end.
    """

    def __init__(self) -> None:
        self._causes: OrderedDict[tuple[str, str], _Cause] = OrderedDict()
        self._ends_at = 0.0
        """When the first window ends in which something was held back; 0: in none."""

    def tell(self, job: Job, settlement: Settlement, state: JobState | None) -> None:
        """Log a settlement that the store has accepted, if it is a failure."""
        if settlement.outcome not in _FAILURES and state is not JobState.DEAD:
            return
        now, error = runtime.monotonic(), settlement.next.error
        self.tick()
        text = _error_of(error, settlement)
        key = (job.type, (error and error.fingerprint) or settlement.outcome)
        cause = self._causes.get(key)
        if cause is None or now - cause.since >= WINDOW:
            cause = self._causes[key] = _Cause(now, f"{job.type}: {text}")
            while len(self._causes) > CAUSES:
                self._tell_rest(self._causes.popitem(last=False)[1])
        if cause.logged >= IN_FULL:
            cause.held_back += 1
            self._ends_at = self._ends_at or cause.since + WINDOW
            return
        cause.logged += 1
        _write(job, settlement, state, text)

    def tick(self) -> None:
        """Log how many were held back, where the window is over. Costs nothing if none were."""
        if not self._ends_at or (now := runtime.monotonic()) < self._ends_at:
            return
        self._ends_at = 0.0
        for cause in self._causes.values():
            if not cause.held_back:
                continue
            if now - cause.since >= WINDOW:
                self._tell_rest(cause)
            else:
                self._ends_at = min(self._ends_at or cause.since + WINDOW, cause.since + WINDOW)

    def close(self) -> None:
        """Log how many were held back until now."""
        for cause in self._causes.values():
            self._tell_rest(cause)

    def _tell_rest(self, cause: _Cause) -> None:
        if cause.held_back:
            count, cause.held_back = cause.held_back, 0
            log.warning("%d more like it were not logged: %s", count, logs.neutral(cause.text))


@cache
def process_log() -> FailureLog:
    """Return the log that all parts of this process share, so that its limit is that of all."""
    return FailureLog()


def _error_of(error: ErrorInfo | None, settlement: Settlement) -> str:
    if error is None:
        return settlement.next.reason or settlement.outcome
    kind = error.type.rpartition(".")[2]
    return f"{kind}: {error.message}" if error.message else kind


def _write(job: Job, settlement: Settlement, state: JobState | None, text: str) -> None:
    dead = state is JobState.DEAD
    level = logging.ERROR if dead else logging.WARNING
    if not log.isEnabledFor(level):
        return
    error, delay = settlement.next.error, settlement.next.delay_ms / 1000
    fields: dict[str, object] = {
        "event": "job.dead" if dead else "job.failed",
        "job_id": job.id,
        "tenant": job.tenant,
        "attempt": job.attempt + 1,
        "type": job.type,
        "queue": job.queue,
        "outcome": settlement.outcome,
        "state": None if state is None else state.value,
        "error": text,
        "fingerprint": "" if error is None else error.fingerprint,
    }
    became = "is dead" if dead else settlement.outcome
    if state is JobState.WAITING:
        fields["retry_in"] = delay
        became += f", runs again in {delay:g} s"
    about = f"tenant {job.tenant}, attempt {job.attempt + 1}"
    message = logs.neutral(f"job {job.type} {job.id} ({about}) {became}: {text}")
    record = log.makeRecord(
        log.name, level, __file__, 0, message, (), None, extra={logs.FIELDS: fields}
    )
    if error is not None and error.traceback:
        # The text, not the exception: in the text, secrets are hidden.
        record.exc_text = error.traceback.rstrip("\n")
    log.handle(record)
