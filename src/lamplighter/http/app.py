"""HttpApp: what a program does with an App, through the HTTP service instead of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import msgspec

from lamplighter.http.call import HttpCall
from lamplighter.http.errors import decoded, foreign
from lamplighter.http.handle import HttpHandle
from lamplighter.http.transport import Transport
from lamplighter.job import Job
from lamplighter.model.errors import InvalidArguments, KeyConflict
from lamplighter.model.ids import check_id
from lamplighter.model.names import shown
from lamplighter.options import SubmitOptions, positive_seconds
from lamplighter.port.values import SubmitAnswer
from lamplighter.portal import Portal, refuse_inside_loop

R = TypeVar("R")

BATCH = 1_000
"""Jobs of one request."""
BATCH_BYTES = 8 << 20
"""Bytes of one request, about; a service takes twice as many unless it is told otherwise."""


class _Submitted(msgspec.Struct):
    id: str
    answer: SubmitAnswer


class _Batch(msgspec.Struct):
    jobs: list[_Submitted]


_one = msgspec.json.Decoder(_Submitted)
_many = msgspec.json.Decoder(_Batch)


class HttpApp:
    """A program's way to jobs, through the service at ``url``.

    The token is ``token``, LAMPLIGHTER_TOKEN, or in the file that LAMPLIGHTER_TOKEN_FILE names; a
    service without keys needs none. A request, with all its repetitions, has ``timeout`` seconds.
    Nothing is opened before it is needed.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        self._transport = Transport(url, token, positive_seconds("timeout", timeout))
        self._portal = Portal(self._transport.close)

    # ── submit ───────────────────────────────────────────────────────────────────────────────

    @overload
    async def submit(
        self,
        type: Job[..., R],
        arguments: Mapping[str, object],
        **options: Unpack[SubmitOptions],
    ) -> HttpHandle[R]: ...
    @overload
    async def submit(
        self, type: str, arguments: Mapping[str, object], **options: Unpack[SubmitOptions]
    ) -> HttpHandle[object]: ...
    async def submit(
        self,
        type: str | Job[..., Any],
        arguments: Mapping[str, object],
        **options: Unpack[SubmitOptions],
    ) -> HttpHandle[Any]:
        """Submit a job, by the name of its type or by the job that ``@app.job`` made.

        The service checks the arguments; those of a job that is at hand are checked here first.
        Without an idempotency key one is drawn, so that a lost answer makes no second job.
        """
        return await self._submit(HttpCall(type, arguments, options))

    async def call(
        self,
        type: str | Job[..., R],
        arguments: Mapping[str, object],
        **options: Unpack[SubmitOptions],
    ) -> HttpCall[R]:
        """Check a job like ``submit`` and make it, without submitting it yet."""
        return HttpCall(type, arguments, options)

    async def submit_many(self, calls: Iterable[HttpCall[R]]) -> list[HttpHandle[R]]:
        """Submit many calls, in batches; the service checks each of them before it stores any.

        An idempotency key used before with another body raises KeyConflict, after the other jobs
        were stored. Submitting the same calls again stores nothing twice.
        """
        made = _checked(calls)
        handles: list[HttpHandle[R]] = []
        for some in _batches(made):
            body = b"[%b]" % b",".join(call.body for call in some)
            answer = await self._transport.ask("POST", "/v1/jobs:batch", body=body)
            said = decoded(_many, answer.status, answer.body).jobs
            if len(said) != len(some):
                raise foreign(answer.status, answer.body)
            handles += [self._handle(call, one) for call, one in zip(some, said, strict=True)]
        for call, handle in zip(made, handles, strict=True):
            if handle.answer is SubmitAnswer.CONFLICT:
                raise KeyConflict(
                    f"the idempotency key {shown(call.key)} belongs to job `{handle.id}`, which "
                    "was submitted with another type, arguments or options",
                    hint="use another key for another job; for the same job repeat the same call",
                    value=call.key,
                )
        return handles

    def handle(self, job_id: str) -> HttpHandle[object]:
        """Take a job in hand by its id."""
        return HttpHandle(self._transport, self._portal, check_id(job_id))

    async def _submit(self, call: HttpCall[R]) -> HttpHandle[R]:
        answer = await self._transport.ask("POST", "/v1/jobs", body=call.body)
        return self._handle(call, decoded(_one, answer.status, answer.body))

    def _handle(self, call: HttpCall[R], said: _Submitted) -> HttpHandle[R]:
        answer = said.answer
        if call.drawn and answer is SubmitAnswer.ALREADY:
            # Our own first try was stored and only its answer was lost.
            answer = SubmitAnswer.CREATED
        return HttpHandle(self._transport, self._portal, said.id, answer, call.kind)

    # ── open and close ───────────────────────────────────────────────────────────────────────

    async def open(self) -> Self:
        """Ask the service whether it is there, to learn now whether it can be reached."""
        await self._transport.ask("GET", "/healthz")
        return self

    async def close(self) -> None:
        """Close the connections. Using it again opens others."""
        await self._transport.close()
        if self._portal.started:
            await asyncio.to_thread(self._portal.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def submit_sync(
        self,
        type: str | Job[..., R],
        arguments: Mapping[str, object],
        **options: Unpack[SubmitOptions],
    ) -> HttpHandle[R]:
        """``submit`` for code without an event loop."""
        call = HttpCall(type, arguments, options)
        return self._portal.run(lambda: self._submit(call), instead="app.submit(…)")

    def submit_many_sync(self, calls: Iterable[HttpCall[R]]) -> list[HttpHandle[R]]:
        """``submit_many`` for code without an event loop."""
        return self._portal.run(lambda: self.submit_many(calls), instead="app.submit_many(…)")

    def open_sync(self) -> Self:
        """``open`` for code without an event loop."""
        return self._portal.run(self.open, instead="app.open()")

    def close_sync(self) -> None:
        """``close`` for code without an event loop."""
        refuse_inside_loop("app.close()")
        self._portal.close()

    def __repr__(self) -> str:
        return f"<HttpApp at {self._transport.url}>"


def _checked(calls: Iterable[HttpCall[R]]) -> list[HttpCall[R]]:
    made = list(calls)
    for call in made:
        if not isinstance(call, HttpCall):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArguments(
                f"{shown(call)} is not a call",
                hint='give calls, as in submit_many([await app.call("charge", {…})])',
                value=call,
            )
    return made


def _batches(calls: Sequence[HttpCall[R]]) -> Iterator[list[HttpCall[R]]]:
    """Cut calls into what one request carries, by number and by size."""
    some: list[HttpCall[R]] = []
    size = 0
    for call in calls:
        if some and (len(some) == BATCH or size + len(call.body) > BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(call)
        size += len(call.body)
    if some:
        yield some
