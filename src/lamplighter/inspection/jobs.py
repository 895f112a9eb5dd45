"""``app.jobs`` and ``app.dead_letters``: jobs in the store, one by one and many at once."""

from __future__ import annotations

from builtins import list as List  # noqa: N812 - `list` is a method here
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.inspection.views import AttemptView, DeadLetterCause, JobView, LogLine
from lamplighter.model.changes import Action
from lamplighter.model.errors import InvalidOption
from lamplighter.model.filters import Filter
from lamplighter.model.ids import check_id
from lamplighter.model.job import Status
from lamplighter.model.journal import unpack
from lamplighter.model.names import check_name, check_schedule, shown
from lamplighter.options import check_known, instant
from lamplighter.port.bulk import BulkChange

PAGE = 100

ChangeAction = Literal["cancel", "hold", "unhold", "retry", "replay", "purge"]
"""What is done to many jobs at once."""

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
    schedule: Names
    """Id of the schedule that made it."""
    fingerprint: Names
    """Of the error, as `DeadLetterCause` names it."""
    created_after: datetime
    """Submitted at this instant or later."""
    created_before: datetime
    """Submitted before this instant."""
    older_than: timedelta
    """Submitted longer ago than this."""
    newer_than: timedelta
    """Submitted within this time."""
    finished_after: datetime
    """Ended at this instant or later."""
    finished_before: datetime
    """Ended before this instant."""


class Jobs:
    """``app.jobs``: list jobs, read one with its attempts and its log, and change many."""

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

    async def attempts(self, job_id: str, *, limit: int = 100) -> List[AttemptView]:
        """Return the newest attempts of a job in all its lives, ``limit`` of them, oldest first."""
        engine = await self._client.engine()
        ask = partial(engine.inspector.attempts, check_id(job_id), limit=limit)
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

    async def change(
        self,
        action: ChangeAction,
        *,
        everything: bool = False,
        dry_run: bool = False,
        by: str = "client",
        reason: str = "",
        progress: Callable[[dict[str, int]], object] | None = None,
        **which: Unpack[JobSelection],
    ) -> dict[str, int]:
        """Change every job that a selection means, newest first, and count the answers.

        `done`; `requested` for running jobs that were told to stop; `already`, `conflict` and
        `unknown` for jobs that had changed meanwhile. Only jobs are affected that were there when
        it began, each once; it is decided again for each when it is changed. Jobs in a status
        in which the action does nothing are passed over. To mean all jobs, say
        ``everything=True``. With ``dry_run`` nothing is changed. ``progress`` is called with the
        counts after each page; to stop, cancel the call or return False: what was done stays done.
        """
        chosen = selected(which)
        if chosen.empty != everything:
            given = "both a selection and everything=True" if everything else "no selection"
            raise InvalidOption(
                f"{given} was given",
                hint="give a selection, as in type='charge', or everything=True to mean all jobs",
                value=everything,
            )
        bulk = BulkChange(
            await self._client.engine(),
            _action(action),
            chosen,
            by=by,
            reason=reason,
            repeated=self._client.repeated,
        )
        counts: dict[str, int] = {}
        while not bulk.over:
            page = await bulk.read()
            for one in bulk.foretell(page) if dry_run else await bulk.change(page):
                counts[one.answer.value] = counts.get(one.answer.value, 0) + 1
            if progress is not None and progress(dict(counts)) is False:
                break
        return counts

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def change_sync(
        self,
        action: ChangeAction,
        *,
        everything: bool = False,
        dry_run: bool = False,
        by: str = "client",
        reason: str = "",
        progress: Callable[[dict[str, int]], object] | None = None,
        **which: Unpack[JobSelection],
    ) -> dict[str, int]:
        """``change`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.change(
                action,
                everything=everything,
                dry_run=dry_run,
                by=by,
                reason=reason,
                progress=progress,
                **which,
            ),
            instead="app.jobs.change(…)",
        )

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

    def attempts_sync(self, job_id: str, *, limit: int = 100) -> List[AttemptView]:
        """``attempts`` for code without an event loop."""
        return self._client.portal.run(
            lambda: self.attempts(job_id, limit=limit), instead="app.jobs.attempts(…)"
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
        tag=None if which.get("tag") is None else check_name("tag", which["tag"]),
        schedules=tuple(map(check_schedule, _several("schedule", which.get("schedule")))),
        fingerprints=_fingerprints(which.get("fingerprint")),
        created_after_ms=_latest(_instant("created_after", which), _ago("newer_than", which)),
        created_before_ms=_earliest(_instant("created_before", which), _ago("older_than", which)),
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


def _fingerprints(given: object) -> tuple[str, ...]:
    """Return checked fingerprints; the empty one means: without an error."""
    names = _several("fingerprint", given)
    return tuple(name and check_name("fingerprint", name) for name in names)


def _instant(what: str, which: Mapping[str, Any]) -> int | None:
    given = which.get(what)
    return None if given is None else instant(what, given)


def _ago(what: str, which: Mapping[str, Any]) -> int | None:
    given = which.get(what)
    if given is None:
        return None
    if not isinstance(given, timedelta) or given < timedelta(0):
        raise InvalidOption(
            f"{what} is {shown(given)}, which is no time that has passed",
            hint="give a timedelta, as in timedelta(hours=2)",
            value=given,
        )
    return runtime.now_ms() - given // timedelta(milliseconds=1)


def _latest(*instants: int | None) -> int | None:
    return max((one for one in instants if one is not None), default=None)


def _earliest(*instants: int | None) -> int | None:
    return min((one for one in instants if one is not None), default=None)


def _action(given: str) -> Action:
    if given not in get_args(ChangeAction):
        raise InvalidOption(
            f"unknown action {shown(given)}",
            hint=f"use one of {', '.join(get_args(ChangeAction))}",
            value=given,
        )
    return Action(given)
