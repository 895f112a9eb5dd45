"""A schedule as it stands in the store."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.model.errors import InvalidInput
from lamplighter.model.recurring import Spec, jitter_of
from lamplighter.model.schedule import Preview
from lamplighter.model.timetable import milliseconds, moment
from lamplighter.port import specs
from lamplighter.port.schedules import ScheduleRecord
from lamplighter.schedules.upcoming import upcoming


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands in the store."""

    record: ScheduleRecord
    """What the store has of it."""

    @property
    def id(self) -> str:
        """Its name."""
        return self.record.id

    @property
    def spec(self) -> Spec:
        """Calendar, job and policy; InvalidInput if another version has written them."""
        return specs.from_text(self.record.spec, self.record.id)

    @property
    def next_run(self) -> datetime | None:
        """When its next occurrence is fired; None: never, or it is held."""
        due = self.next_run_ms
        return None if due is None else moment(due)

    @property
    def next_run_ms(self) -> int | None:
        """The same in milliseconds since 1970."""
        due = self.record.due_ms
        if due is None or self.record.hold is not None:
            return None
        if due == self.record.changed_at_ms:
            # It was changed, and is looked at as soon as somebody fires schedules.
            with suppress(InvalidInput):
                found = self.preview(1, after=moment(due))
                return milliseconds(found[0].utc + self.shift) if found else None
        return due

    @property
    def shift(self) -> timedelta:
        """How much later than its calendar says it is fired: its part of the jitter."""
        return timedelta(
            milliseconds=jitter_of(self.record.tenant, self.id, self.spec.policy.jitter_ms)
        )

    def preview(self, count: int = 10, *, after: datetime | None = None) -> list[Preview]:
        """Return its next occurrences, with marks where a change of the clocks acts.

        Within its start, end and number of runs; each is fired ``shift`` later.
        """
        return upcoming(self.spec, count, after=after, fired=self.record.fired)
