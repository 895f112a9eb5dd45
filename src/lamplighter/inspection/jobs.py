"""``app.jobs`` and ``app.dead_letters``: jobs in the store, their attempts and their logs."""

from __future__ import annotations

from builtins import list as List  # noqa: N812 - `list` is a method here
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypedDict, Unpack, cast

from lamplighter.client import Client
from lamplighter.inspection.views import AttemptView, DeadLetterCause, JobView, LogLine
from lamplighter.model.errors import InvalidOption
from lamplighter.model.filters import Filter
from lamplighter.model.ids import check_id
from lamplighter.model.job import Status
from lamplighter.model.journal import unpack
from lamplighter.model.names import check_name, shown
from lamplighter.options import check_known, instant

PAGE = 100

Names = str | Sequence[str]
"""One name, or several of which any will do."""


class JobSelection(TypedDict, total=False):
    """Which jobs; all that is given must match."""

    status: Names
    """As in `Status`, or the groups `pending` and `failed`."""
    type: Names
    """Name of the job type."""
    queue: Names
    """Name of the queue."""
    tenant: Names
    """Name of the tenant."""
    tag: str
    """One of its tags."""
    fingerprint: Names
    """Of the error, as `DeadLetterCause` names it."""
    created_after: datetime
    """Submitted at this instant or later."""
    created_before: datetime
    """Submitted before this instant."""
    finished_after: datetime
    """Ended at this instant or later."""
    finished_before: datetime
    """Ended before this instant."""


class Jobs:
    """``app.jobs``: list jobs, and read one with its attempts and its log."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(
        self, *, limit: int | None = None, **which: Unpack[JobSelection]
    ) -> AsyncIterator[JobView]:
        """Return jobs, newest first: ``async for job in app.jobs.list(status="dead")``.

        Read in pages, so that what changes meanwhile may be seen in its new state.
        """
        engine = await self._client.engine()
        ask = partial(engine.inspector.jobs, selected(which))
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = await self._client.repeatable(partial(ask, limit=size, cursor=cursor))
            for record in page.jobs:
                yield JobView.of(record)
            left = None if left is None else left - len(page.jobs)
            cursor = page.cursor
            if cursor is None:
                return

    async def get(self, job_id: str) -> JobView:
        """Return one job, or raise UnknownJob."""
        return JobView.of(await self._client.record(check_id(job_id)))

    async def counts(self) -> dict[str, int]:
        """Return the number of jobs per stored state, each exact up to 10,000."""
        engine = await self._client.engine()
        return await self._client.repeatable(engine.inspector.counts)

    async def attempts(self, job_id: str) -> List[AttemptView]:
        """Return the attempts of a job in all its lives, oldest first."""
        engine = await self._client.engine()
        ask = partial(engine.inspector.attempts, check_id(job_id))
        found = await self._client.repeatable(ask)
        if not found:
            await self._client.record(job_id)
        return [AttemptView.of(attempt) for attempt in found]

    async def logs(self, job_id: str) -> AsyncIterator[LogLine]:
        """Return the lines that a job's attempts have logged and printed so far, oldest first."""
        await self._client.record(check_id(job_id))
        engine = await self._client.engine()
        after: tuple[int, int] | None = None
        while True:
            ask = partial(engine.inspector.logs, job_id, after=after, limit=PAGE)
            pieces = await self._client.repeatable(ask)
            if not pieces:
                return
            for found in pieces:
                after = (found.lease, found.piece.number)
                for line in unpack(found.piece.data):
                    yield LogLine.of(line, found.lease)

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def list_sync(
        self, *, limit: int | None = None, **which: Unpack[JobSelection]
    ) -> List[JobView]:
        """``list`` for code without an event loop: all of them at once."""

        async def gather() -> List[JobView]:
            return [job async for job in self.list(limit=limit, **which)]

        return self._client.portal.run(gather, instead="app.jobs.list(…)")

    def get_sync(self, job_id: str) -> JobView:
        """``get`` for code without an event loop."""
        return self._client.portal.run(lambda: self.get(job_id), instead="app.jobs.get(…)")

    def counts_sync(self) -> dict[str, int]:
        """``counts`` for code without an event loop."""
        return self._client.portal.run(self.counts, instead="app.jobs.counts()")

    def attempts_sync(self, job_id: str) -> List[AttemptView]:
        """``attempts`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.attempts(job_id), instead="app.jobs.attempts(…)"
        )

    def logs_sync(self, job_id: str) -> List[LogLine]:
        """``logs`` for code without an event loop: all of them at once."""

        async def gather() -> List[LogLine]:
            return [line async for line in self.logs(job_id)]

        return self._client.portal.run(gather, instead="app.jobs.logs(…)")


class DeadLetters:
    """``app.dead_letters``: jobs that are dead, one by one or by their cause."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs = Jobs(client)

    def list(
        self, *, limit: int | None = None, **which: Unpack[JobSelection]
    ) -> AsyncIterator[JobView]:
        """Return dead jobs, newest first."""
        return self._jobs.list(limit=limit, **_dead(which))

    async def causes(self, **which: Unpack[JobSelection]) -> List[DeadLetterCause]:
        """Return the causes of death, most frequent first; the newest 10,000 jobs are grouped."""
        engine = await self._client.engine()
        found = await self._client.repeatable(
            partial(engine.inspector.dead_groups, selected(_dead(which)))
        )
        return [DeadLetterCause.of(group, at_least=found.at_least) for group in found.groups]

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def list_sync(
        self, *, limit: int | None = None, **which: Unpack[JobSelection]
    ) -> List[JobView]:
        """``list`` for code without an event loop: all of them at once."""
        return self._jobs.list_sync(limit=limit, **_dead(which))

    def causes_sync(self, **which: Unpack[JobSelection]) -> List[DeadLetterCause]:
        """``causes`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.causes(**which), instead="app.dead_letters.causes(…)"
        )


def selected(which: Mapping[str, Any]) -> Filter:
    """Return the store's filter for a selection; what nothing can match is refused."""
    check_known(which, JobSelection.__annotations__, "a list of jobs")
    return Filter(
        statuses=_several("status", which.get("status")),
        types=_names("job type", which.get("type")),
        queues=_names("queue", which.get("queue")),
        tenants=_names("tenant", which.get("tenant")),
        tag=which.get("tag"),
        fingerprints=_several("fingerprint", which.get("fingerprint")),
        created_after_ms=_instant("created_after", which),
        created_before_ms=_instant("created_before", which),
        finished_after_ms=_instant("finished_after", which),
        finished_before_ms=_instant("finished_before", which),
    )


def _dead(which: JobSelection) -> JobSelection:
    if "status" in which:
        raise InvalidOption(
            f"dead letters were asked for with status={shown(which['status'])}",
            hint="leave `status` out, or use app.jobs.list(status=…)",
            value=which["status"],
        )
    return {**which, "status": Status.DEAD.value}


def _several(what: str, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Collection):
        raise InvalidOption(
            f"{what} is {shown(given)}, which is no name",
            hint="give one name, or a list of names of which any will do",
            value=given,
        )
    return tuple(str(name) for name in cast("Collection[object]", listed))


def _names(what: str, given: object) -> tuple[str, ...]:
    return tuple(check_name(what, name) for name in _several(what, given))


def _instant(what: str, which: Mapping[str, Any]) -> int | None:
    given = which.get(what)
    return None if given is None else instant(what, given)
