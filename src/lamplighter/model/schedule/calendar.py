"""What all calendars have in common: which instants come next, and which came before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime

from lamplighter.model.schedule.effort import bounded
from lamplighter.model.schedule.instants import FIRST, LAST, SECOND, micros, moment


class Calendar(ABC):
    """A set of instants. A value: frozen, hashable, equal by content, cheap to build.

    Instants are given as aware datetimes of any zone, and answered in UTC.
    """

    __slots__ = ()

    def next_after(self, t: datetime) -> datetime | None:
        """Return the first instant later than ``t``, or None: never again."""
        start = micros(t)
        with bounded():
            found = self._after(start)
        if found is None:
            return None
        if found <= start:
            raise AssertionError(f"{self!r} does not move on from {t!r}")
        return moment(found)

    def previous_before(self, t: datetime) -> datetime | None:
        """Return the last instant earlier than ``t``, or None: never before.

        As cheap as looking ahead: instants that were missed in between are not counted.
        """
        end = micros(t)
        with bounded():
            found = self._before(end)
        if found is None:
            return None
        if found >= end:
            raise AssertionError(f"{self!r} does not move back from {t!r}")
        return moment(found)

    def between(self, a: datetime, b: datetime) -> Iterator[datetime]:
        """Return every instant later than ``a`` and not later than ``b``, in order."""
        return self._between(micros(a), micros(b))

    def fires_at(self, t: datetime) -> bool:
        """Tell whether ``t`` is one of the instants."""
        with bounded():
            return self._fires(micros(t))

    def __or__(self, other: Calendar) -> Calendar:
        """All instants of both."""
        from lamplighter.model.schedule.combine import Union  # noqa: PLC0415 - made of calendars

        return Union(self, other) if isinstance(other, Calendar) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance]

    def __sub__(self, other: Calendar) -> Calendar:
        """The instants of this one without those of the other."""
        from lamplighter.model.schedule.combine import Except  # noqa: PLC0415 - made of calendars

        return Except(self, other) if isinstance(other, Calendar) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance]

    @abstractmethod
    def describe(self) -> str:
        """Say in plain English when it fires."""

    def _between(self, start: int, end: int) -> Iterator[datetime]:
        found = self._after(start)
        while found is not None and found <= end:
            yield moment(found)
            found = self._after(found)

    # ── what a calendar writes itself; instants are microseconds since 1970 ──────────────────

    @abstractmethod
    def _after(self, at: int) -> int | None:
        """Return the first instant later than ``at``."""

    @abstractmethod
    def _before(self, at: int) -> int | None:
        """Return the last instant earlier than ``at``."""

    def _fires(self, at: int) -> bool:
        """Tell whether ``at`` is one of the instants."""
        return self._after(at - 1) == at


def in_range(seconds: int | None) -> int | None:
    """Return whole seconds as microseconds; beyond the years 1 to 9999 there is nothing."""
    if seconds is None or not FIRST <= seconds <= LAST:
        return None
    return seconds * SECOND
