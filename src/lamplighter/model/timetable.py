"""When a schedule fires: its calendar within the bounds of its policy, in milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from lamplighter.model import ids
from lamplighter.model.errors import TooCostly
from lamplighter.model.job import Extras, NewJob
from lamplighter.model.recurring import Spec, jitter_of
from lamplighter.model.schedule import Calendar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class Timetable:
    """A calendar within the bounds of its schedule's policy, in milliseconds."""

    def __init__(self, schedule_id: str, spec: Spec) -> None:
        self.id = schedule_id
        self.tenant = spec.template.tenant
        self.spec = spec
        self.offset_ms = jitter_of(self.tenant, schedule_id, spec.policy.jitter_ms)
        self._calendar = spec.calendar
        self._start_ms = spec.policy.start_ms
        self._end_ms = spec.policy.end_ms

    def next_after(self, at_ms: int) -> int | None:
        """Return the first occurrence later than this."""
        if self._start_ms is not None:
            at_ms = max(at_ms, self._start_ms - 1)
        at = _next_after(self._calendar, at_ms)
        return None if at is None or (self._end_ms is not None and at > self._end_ms) else at

    def latest_until(self, at_ms: int) -> int | None:
        """Return the last occurrence that is not later than this."""
        if self._end_ms is not None:
            at_ms = min(at_ms, self._end_ms)
        found = self._calendar.previous_before(moment(at_ms + 1))
        return None if found is None else milliseconds(found)

    def began_by(self, at_ms: int) -> bool:
        """Tell whether it has an occurrence that is not later than this."""
        latest = self.latest_until(at_ms)
        return latest is not None and (self._start_ms is None or latest >= self._start_ms)

    def due_after(self, at_ms: int) -> int | None:
        """Tell when the first occurrence later than this is to be fired."""
        found = self.next_after(at_ms)
        return None if found is None else found + self.offset_ms

    def unbounded(self, after_ms: int, until_ms: int, most: int) -> tuple[list[int], bool]:
        """Return the first occurrences of a time, whatever start and end the policy has.

        And whether these are all. Of a calendar whose instants are hard to find there may be fewer
        than ``most`` and still more to come: a search that has become too costly ends with what it
        has found, so that it can go on from there.
        """
        found: list[int] = []
        try:
            for at in self._calendar.between(moment(after_ms), moment(until_ms)):
                if len(found) == most:
                    return found, False
                found.append(milliseconds(at))
        except TooCostly:
            if not found:
                raise
            return found, False
        return found, True

    def up_to(self, after_ms: int, until_ms: int, most: int) -> list[int]:
        """Return the first occurrences of a time, ``most`` of them."""
        found: list[int] = []
        at = self.next_after(after_ms)
        while at is not None and at <= until_ms and len(found) < most:
            found.append(at)
            at = self.next_after(at)
        return found

    def job(self, due_ms: int, *, run_at_ms: int | None = None) -> NewJob:
        """Return the job for an occurrence; the same occurrence has always the same id."""
        job_id = ids.of_occurrence(self.tenant, self.id, due_ms)
        return self._job(
            job_id, due_ms, due_ms + self.offset_ms if run_at_ms is None else run_at_ms
        )

    def triggered(self, now_ms: int, chance: int) -> NewJob:
        """Return a job that is not for an occurrence, from 70 random bits."""
        job_id = ids.compose(now_ms, ids.shard_of_schedule(self.tenant, self.id), chance)
        return self._job(job_id, now_ms, None)

    def _job(self, job_id: str, due_ms: int, run_at_ms: int | None) -> NewJob:
        template, given = self.spec.template, self.spec.template.extras
        extras = Extras(
            retry=given.retry,
            timeout=given.timeout,
            tags=given.tags,
            metadata={**given.metadata, "scheduled_for": shown_instant(due_ms)},
            secrets=given.secrets,
        )
        return NewJob(
            id=job_id,
            type=template.type,
            args=template.args,
            queue=template.queue,
            level=template.level,
            tenant=template.tenant,
            run_at_ms=run_at_ms,
            delivery=template.delivery,
            extras=extras,
            cost=template.cost,
            schedule=self.id,
        )


@lru_cache(maxsize=4096)
def _next_after(calendar: Calendar, at_ms: int) -> int | None:
    """Ask a calendar. Many schedules have the same one, and fall due at the same instant."""
    found = calendar.next_after(moment(at_ms))
    return None if found is None else milliseconds(found)


@lru_cache(maxsize=256)
def shown_instant(at_ms: int) -> str:
    """Return an instant as people and handlers read it."""
    return moment(at_ms).isoformat().replace("+00:00", "Z")


def moment(at_ms: int) -> datetime:
    """Return an instant as calendars know it."""
    return _EPOCH + at_ms * _MS


def milliseconds(at: datetime) -> int:
    """Return an instant in milliseconds since 1970, rounded up: never early."""
    return -((_EPOCH - at) // _MS)
