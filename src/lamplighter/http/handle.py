"""A submitted job in the caller's hand, seen through the service."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Generic, NoReturn, TypeVar, cast

import msgspec

from lamplighter import runtime
from lamplighter.handle import checked_timeout, raise_omitted
from lamplighter.http.errors import decoded
from lamplighter.http.transport import Answer, Transport
from lamplighter.model.errors import JobFailed, ResultTimeout
from lamplighter.model.job import TERMINAL, JobState, Status
from lamplighter.model.journal import Progress
from lamplighter.port.values import ChangeAnswer, SubmitAnswer
from lamplighter.portal import Portal
from lamplighter.registry import JobType

R_co = TypeVar("R_co", covariant=True)

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0
_ENDED = frozenset(state.value for state in TERMINAL)


class RemoteError(msgspec.Struct, frozen=True):
    """Why the last attempt failed."""

    type: str
    message: str


class RemoteJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the service says of a job."""

    id: str
    type: str
    queue: str
    tenant: str
    status: Status
    next_run: datetime | None
    """When it is due, if it waits."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: msgspec.Raw
    """What its handler returned, as JSON."""
    result_note: str | None
    """Why there is no result although it succeeded."""
    reason: str | None
    """Why it is dead or cancelled."""
    error: RemoteError | None
    progress: Progress | None = None
    """How far its last attempt has said that it has come."""

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return self.status.value in _ENDED


_decoder = msgspec.json.Decoder(RemoteJob)


class HttpHandle(Generic[R_co]):
    """One job, by its id. Making a handle reads nothing."""

    __slots__ = ("_kind", "_portal", "_transport", "answer", "id")

    def __init__(
        self,
        transport: Transport,
        portal: Portal,
        job_id: str,
        answer: SubmitAnswer | None = None,
        kind: JobType | None = None,
    ) -> None:
        self._transport = transport
        self._portal = portal
        self._kind = kind
        self.id = job_id
        self.answer = answer
        """What became of the submission; None for a handle made from an id."""

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
        job = await self._finished(checked_timeout(timeout))
        if job.status.value != JobState.SUCCEEDED.value:
            _raise_failure(job)
        if job.result_note is not None:
            raise_omitted(job.id, job.result_note)
        if self._kind is not None:
            return cast("R_co", self._kind.decode_result(bytes(job.result)))
        return cast("R_co", msgspec.json.decode(job.result))

    async def status(self) -> Status:
        """Say where the job stands."""
        return (await self.record()).status

    async def record(self) -> RemoteJob:
        """Read what the service knows of the job."""
        answer = await self._transport.ask("GET", self._path())
        return decoded(_decoder, answer.status, answer.body)

    # ── operate ──────────────────────────────────────────────────────────────────────────────

    async def cancel(self, *, reason: str = "") -> ChangeAnswer:
        """Cancel: `done` if it will not run, `requested` if it runs and was asked to stop."""
        answer = await self._change("DELETE", self._path(), reason)
        return ChangeAnswer.REQUESTED if answer.status == 202 else ChangeAnswer.DONE

    async def hold(self, *, reason: str = "") -> None:
        """Keep the job from running until it is unheld."""
        await self._change("POST", self._path("/hold"), reason)

    async def unhold(self, *, reason: str = "") -> None:
        """Let a held job go on."""
        await self._change("POST", self._path("/unhold"), reason)

    async def retry(self, *, reason: str = "") -> None:
        """Run a waiting job now; let a dead one go on, with the same effect keys."""
        await self._change("POST", self._path("/retry"), reason, repeatable=False)

    async def replay(self, *, reason: str = "") -> None:
        """Start a job that has ended anew, under the same id, with new effect keys."""
        await self._change("POST", self._path("/replay"), reason, repeatable=False)

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def result_sync(self, timeout: float | None = None) -> R_co:
        """``result`` for code without an event loop."""
        return self._portal.run(lambda: self.result(timeout), instead="handle.result(…)")

    def status_sync(self) -> Status:
        """``status`` for code without an event loop."""
        return self._portal.run(self.status, instead="handle.status()")

    def record_sync(self) -> RemoteJob:
        """``record`` for code without an event loop."""
        return self._portal.run(self.record, instead="handle.record()")

    def cancel_sync(self, *, reason: str = "") -> ChangeAnswer:
        """``cancel`` for code without an event loop."""
        return self._portal.run(lambda: self.cancel(reason=reason), instead="handle.cancel()")

    def hold_sync(self, *, reason: str = "") -> None:
        """``hold`` for code without an event loop."""
        self._portal.run(lambda: self.hold(reason=reason), instead="handle.hold()")

    def unhold_sync(self, *, reason: str = "") -> None:
        """``unhold`` for code without an event loop."""
        self._portal.run(lambda: self.unhold(reason=reason), instead="handle.unhold()")

    def retry_sync(self, *, reason: str = "") -> None:
        """``retry`` for code without an event loop."""
        self._portal.run(lambda: self.retry(reason=reason), instead="handle.retry()")

    def replay_sync(self, *, reason: str = "") -> None:
        """``replay`` for code without an event loop."""
        self._portal.run(lambda: self.replay(reason=reason), instead="handle.replay()")

    def __repr__(self) -> str:
        return f"<HttpHandle {self.id}>"

    # ── how it is done ───────────────────────────────────────────────────────────────────────

    def _path(self, verb: str = "") -> str:
        return f"/v1/jobs/{self.id}{verb}"

    async def _change(
        self, method: str, path: str, reason: str, *, repeatable: bool = True
    ) -> Answer:
        params = {"reason": reason} if reason else None
        return await self._transport.ask(method, path, params=params, repeatable=repeatable)

    async def _finished(self, timeout: float | None) -> RemoteJob:
        """Read until the job has ended: soon, then more seldom."""
        deadline = math.inf if timeout is None else runtime.monotonic() + timeout
        wait = _FIRST_WAIT
        while True:
            job = await self.record()
            if job.ended:
                return job
            left = deadline - runtime.monotonic()
            if left <= 0:
                raise ResultTimeout(
                    f"job `{job.id}` of type `{job.type}` has not ended within {timeout} s; "
                    f"it is {job.status.value}",
                    hint=f"wait longer, or ask GET /v1/jobs/{job.id}/why; the job goes on",
                    value=timeout,
                )
            await runtime.sleep(min(left, wait))
            wait = min(wait * 1.5, _LONGEST_WAIT)


def _raise_failure(job: RemoteJob) -> NoReturn:
    cause = f"job `{job.id}` of type `{job.type}` is {job.status.value}"
    if job.reason:
        cause += f": {job.reason}"
    if job.error is not None:
        said = f": {job.error.message}" if job.error.message else ""
        cause += f" ({job.error.type}{said})"
    verb = "retry" if job.status is Status.DEAD else "replay"
    raise JobFailed(cause, hint=f"`await handle.{verb}()` runs it again", value=job.error)
