"""A submitted job in the caller's hand: wait for it, look at it, operate it."""

from __future__ import annotations

import math
from typing import Generic, NoReturn, TypeVar, cast

from lamplighter import payload, runtime
from lamplighter.backoff import Backoff
from lamplighter.client import Client, unknown
from lamplighter.model.errors import InvalidTime, JobFailed, ResultOmitted, ResultTimeout
from lamplighter.model.job import TERMINAL, JobRecord, JobState, Status
from lamplighter.model.names import shown
from lamplighter.port.store import FINISHED_TOPIC, JobStore
from lamplighter.port.values import ChangeAnswer, Changed, Explanation, SubmitAnswer

R_co = TypeVar("R_co", covariant=True)

_BY = "client"
_FIRST_WAIT = 0.05
_READ_GAP = 0.001
"""Seconds between two reads, per waiting call: all of them together read 1,000 times a second."""


class Handle(Generic[R_co]):
    """One job, by its id. Making a handle reads nothing."""

    __slots__ = ("_client", "answer", "id")

    def __init__(self, client: Client, job_id: str, answer: SubmitAnswer | None = None) -> None:
        self._client = client
        self.id = job_id
        self.answer = answer
        """What the store said to the submission; None for a handle made from an id."""

    @property
    def existing(self) -> bool:
        """True if the submission met a job that was there before, by its idempotency key."""
        return self.answer is not None and self.answer.existing

    # ── wait and look ────────────────────────────────────────────────────────────────────────

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait until the job has ended and give what its handler returned.

        Raises JobFailed if it ended otherwise, ResultTimeout if ``timeout`` seconds pass first,
        ResultOmitted if it succeeded with a result that could not be kept.
        """
        record = await self._finished(checked_timeout(timeout))
        if record.state is not JobState.SUCCEEDED:
            _raise_failure(record)
        if record.result_note is not None:
            raise_omitted(self.id, record.result_note)
        return cast("R_co", self._decoded(record))

    async def status(self) -> Status:
        """Say where the job stands."""
        return (await self.record()).status

    async def record(self) -> JobRecord:
        """Read the store's own record of the job: times in ms since 1970, payloads as JSON bytes.

        ``app.jobs.get(job_id)`` gives the same job as a `JobView`: datetimes and plain data, with
        the values of secret arguments hidden.
        """
        return await self._client.record(self.id)

    async def explain(self) -> Explanation:
        """Say why the job is not running."""
        engine = await self._client.engine()
        found = await self._client.repeatable(lambda: engine.inspector.explain(self.id))
        if found is None:
            raise unknown(self.id)
        return found

    # ── operate ──────────────────────────────────────────────────────────────────────────────

    async def cancel(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Cancel: `done` if it waited, `requested` if it runs, `already` if asked before."""

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.cancel([self.id], by=by, reason=reason)

        return await self._client.change("cancel", change, self.id)

    async def hold(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Keep the job from running until it is unheld."""

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.hold([self.id], by=by, reason=reason)

        return await self._client.change("hold", change, self.id)

    async def unhold(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Let a held job go on."""

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.unhold([self.id], by=by, reason=reason)

        return await self._client.change("unhold", change, self.id)

    async def retry(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Run a waiting job now; let a dead one go on.

        All attempts of a dead job are available again; its generation and with it
        ``ctx.effect_key`` stay, so that what it has done outside is not done twice.
        """

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.retry([self.id], by=by, reason=reason)

        return await self._client.change("retry", change, self.id)

    async def replay(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Start a job that has ended anew, under the same id.

        Its generation is one higher, so that ``ctx.effect_key`` differs: what it does outside is
        done again.
        """

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.replay([self.id], by=by, reason=reason)

        return await self._client.change("replay", change, self.id)

    async def erase(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """Remove a job that has ended, with all that belongs to it, for ever.

        Arguments, result, errors, attempts, logs and its idempotency key: nothing is left.
        """

        async def change(jobs: JobStore) -> list[Changed]:
            return await jobs.erase([self.id], by=by, reason=reason)

        return await self._client.change("erase", change, self.id)

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def result_sync(self, timeout: float | None = None) -> R_co:
        """``result`` for code without an event loop."""
        return self._client.portal.run(lambda: self.result(timeout), instead="handle.result(…)")

    def status_sync(self) -> Status:
        """``status`` for code without an event loop."""
        return self._client.portal.run(self.status, instead="handle.status()")

    def record_sync(self) -> JobRecord:
        """``record`` for code without an event loop."""
        return self._client.portal.run(self.record, instead="handle.record()")

    def explain_sync(self) -> Explanation:
        """``explain`` for code without an event loop."""
        return self._client.portal.run(self.explain, instead="handle.explain()")

    def cancel_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``cancel`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.cancel(by=by, reason=reason), instead="handle.cancel()"
        )

    def hold_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``hold`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.hold(by=by, reason=reason), instead="handle.hold()"
        )

    def unhold_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``unhold`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.unhold(by=by, reason=reason), instead="handle.unhold()"
        )

    def retry_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``retry`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.retry(by=by, reason=reason), instead="handle.retry()"
        )

    def erase_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``erase`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.erase(by=by, reason=reason), instead="handle.erase()"
        )

    def replay_sync(self, *, by: str = _BY, reason: str = "") -> ChangeAnswer:
        """``replay`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.replay(by=by, reason=reason), instead="handle.replay()"
        )

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    # ── how waiting works ────────────────────────────────────────────────────────────────────

    async def _finished(self, timeout: float | None) -> JobRecord:
        """Read until the job has ended; hints only make the next read come sooner."""
        client = self._client
        engine = await client.engine()
        deadline = None if timeout is None else runtime.monotonic() + timeout
        waits, looks = Backoff(_FIRST_WAIT, client.settings.poll), 0
        # Start to listen before the first look, so that no news falls between look and wait.
        await engine.wakeup.wait([FINISHED_TOPIC], 0)
        client.waiters += 1
        try:
            while True:
                record = await self.record()
                if record.state in TERMINAL:
                    return record
                left = math.inf if deadline is None else deadline - runtime.monotonic()
                if left <= 0:
                    _raise_timeout(record, timeout)
                gap = min(left, _READ_GAP * client.waiters)
                await runtime.sleep(gap)
                # Hints may be lost, and are shared by all who wait: look soon, then more seldom.
                looks += 1
                wait = max(waits.after(looks), gap)
                await engine.wakeup.wait([FINISHED_TOPIC], min(left - gap, wait))
        finally:
            client.waiters -= 1

    def _decoded(self, record: JobRecord) -> object:
        registry = self._client.registry
        if record.job.type in registry:
            return registry.get(record.job.type).decode_result(record.result)
        return None if record.result is None else payload.plain(record.result)


def raise_omitted(job_id: str, note: str) -> NoReturn:
    """Raise what is to be said of a result that could not be kept."""
    raise ResultOmitted(
        f"job `{job_id}` succeeded, but {note}",
        hint="let the handler return small JSON data, or store it and return where it is",
        value=note,
    )


def checked_timeout(timeout: object) -> float | None:
    """Check for how long somebody wants to wait; None: without end."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidTime(
            f"timeout {shown(timeout)} is not a time one can wait",
            hint="give 0 or more seconds, or None to wait without end",
            value=timeout,
        )
    return float(timeout)


def _raise_failure(record: JobRecord) -> NoReturn:
    job, error = record.job, record.error
    cause = f"job `{job.id}` of type `{job.type}` is {record.state.value}"
    if record.reason:
        cause += f": {record.reason}"
    if error is not None:
        cause += f" ({error.text})"
    remedy = "`await handle.replay()` runs it again"
    if record.state is JobState.DEAD:
        remedy = "`await handle.retry()` runs it again"
        if error is not None:
            remedy = f"the traceback is in `(await handle.record()).error`; {remedy}"
    raise JobFailed(cause, hint=remedy, value=error)


def _raise_timeout(record: JobRecord, timeout: float | None) -> NoReturn:
    raise ResultTimeout(
        f"job `{record.job.id}` of type `{record.job.type}` has not ended within {timeout} s; "
        f"it is {record.status.value}",
        hint="wait longer, or ask `await handle.explain()` why it is not running; the job goes on",
        value=timeout,
    )
