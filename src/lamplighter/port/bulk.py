"""Change by filter: everything that a filter means, page by page, with the verbs of the port.

Nothing of it is known to engines: pages of jobs are read through the Inspector, each page is
changed by the verb `change`. Between a page and its change the caller may wait, count, check
quotas, or stop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from lamplighter.model.changes import (
    Action,
    ChangeAnswer,
    Changed,
    acts_on,
    answers,
    situation_of,
    table_of,
)
from lamplighter.model.filters import Filter, statuses_of
from lamplighter.observability import events
from lamplighter.port.store import CANCEL_TOPIC, FINISHED_TOPIC, queue_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from lamplighter.model.job import JobRecord
    from lamplighter.port.store import Engine

T = TypeVar("T")

PAGE = 100
"""Jobs on a page: they are read with their arguments, and those may be large."""

_EFFECTIVE = frozenset({ChangeAnswer.DONE, ChangeAnswer.REQUESTED})
_MAKES_WORK = frozenset({Action.UNHOLD, Action.RETRY, Action.REPLAY})
_ENDS = frozenset({Action.CANCEL, Action.PURGE, Action.ERASE})


class Repeated(Protocol):
    """Makes a call of the store, again where its reply was lost, and tells whether it did."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return what the store answered, and whether it was called more than once."""
        ...


async def once(call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
    """Make a call of the store once."""
    return await call(), False


class BulkChange:
    """An action on everything that a filter means, newest first, or by the time of death.

    It affects only jobs that had been submitted (to their shard, where there are several) when the
    first page was read, each at most once; a job that a transaction submits counts before its
    commit. The store decides again for each job when it changes it: by its situation, and by the
    statuses of the filter. Jobs in statuses in which the action does nothing are passed over.
    Whoever stops between two pages leaves the rest as it is; ``cursor`` says where to go on.
    """

    def __init__(
        self,
        engine: Engine,
        action: Action,
        which: Filter,
        *,
        by: str,
        reason: str,
        cursor: str | None = None,
        repeated: Repeated = once,
    ) -> None:
        self._engine = engine
        self._action = action
        self._by = by
        self._reason = reason
        self._repeated = repeated
        self._asked = statuses_of(which)
        meant = acts_on(action) & self._asked if self._asked else acts_on(action)
        self._which = replace(which, statuses=tuple(sorted(meant)))
        self.cursor = cursor
        self.over = not meant
        """Whether all jobs have been read."""

    async def read(self, most: int = PAGE) -> list[JobRecord]:
        """Read the next jobs; none, where a stretch of the store has none, or all were read."""
        if self.over:
            return []
        size = min(most, PAGE, self._engine.capabilities.max_batch)
        page, _ = await self._repeated(
            lambda: self._engine.inspector.jobs(self._which, limit=size, cursor=self.cursor)
        )
        self.cursor, self.over = page.cursor, page.cursor is None
        return page.jobs

    def foretell(self, jobs: Sequence[JobRecord]) -> list[Changed]:
        """Return what `change` would answer for jobs that are as they were read."""
        found = {job.job.id: situation_of(job).number for job in jobs}
        return answers(table_of(self._action, self._asked), list(found), found)

    async def change(self, jobs: Sequence[JobRecord]) -> list[Changed]:
        """Change jobs that were read, and wake whoever waits for that."""
        if not jobs:
            return []
        changed, again = await self._repeated(
            lambda: self._engine.jobs.change(
                self._action,
                [job.job.id for job in jobs],
                by=self._by,
                reason=self._reason,
                statuses=self._asked,
            )
        )
        if again:
            changed = [
                _first(told, found)
                for told, found in zip(self.foretell(jobs), changed, strict=True)
            ]
        await wake(self._engine, self._action, jobs, changed)
        return changed


def _first(told: Changed, found: Changed) -> Changed:
    """Return the answer of the first try, if that was made and only its reply was lost."""
    undone = found.answer not in _EFFECTIVE and told.answer in _EFFECTIVE
    return found._replace(answer=told.answer) if undone else found


async def wake(
    engine: Engine, action: Action, jobs: Iterable[JobRecord], changed: Iterable[Changed]
) -> None:
    """Wake those who wait for what an action has brought about; ``jobs`` are as they were."""
    effective = {one.id: one.answer for one in changed if one.answer in _EFFECTIVE}
    if action is Action.CANCEL and events.listened():
        for job_id, answer in effective.items():
            events.emit(events.JOB_CANCELLED, job_id=job_id, answer=answer)
    if ChangeAnswer.REQUESTED in effective.values():
        await engine.wakeup.notify(CANCEL_TOPIC)
    if action in _ENDS and effective:
        await engine.wakeup.notify(FINISHED_TOPIC)
    if action in _MAKES_WORK:
        news: dict[str, Counter[str]] = {}
        for job in jobs:
            if job.job.id in effective:
                news.setdefault(job.job.queue, Counter())[job.job.type] += 1
        for queue, types in news.items():
            await engine.wakeup.notify(queue_topic(queue), jobs=types)
