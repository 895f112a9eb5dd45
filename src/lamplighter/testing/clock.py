"""The time of a test: it stands still until the test moves it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from lamplighter import runtime
from lamplighter.model.errors import InvalidTime
from lamplighter.model.names import shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class Clock:
    """The store's clock in a test. It starts at the present, stands still, and goes forward only.

    Due times, delays, retries, leases and retention follow it. Timeouts of handlers do not: they
    are measured where the handler runs, in real seconds.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now_ms = runtime.now_ms() if start is None else _milliseconds("start", start)

    def now(self) -> datetime:
        """Tell the time, in UTC."""
        return _EPOCH + self._now_ms * _MS

    def now_ms(self) -> int:
        """Tell the time in milliseconds since 1970."""
        return self._now_ms

    def advance(
        self,
        duration: float | timedelta = 0,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> datetime:
        """Let time pass: ``advance(hours=24)``, or seconds, or a timedelta; gives the new time."""
        given = (_seconds(duration), days * 86_400, hours * 3600, minutes * 60, seconds)
        passed = sum(given)
        if not math.isfinite(passed) or passed < 0:
            _refuse(f"the clock cannot be advanced by {passed} s", passed)
        return self._set(self._now_ms + round(passed * 1000))

    def move_to(self, instant: datetime) -> datetime:
        """Let time pass until an instant."""
        then = _milliseconds("instant", instant)
        if then < self._now_ms:
            _refuse(f"{instant.isoformat()} is before {self.now().isoformat()}", instant)
        return self._set(then)

    def _set(self, then_ms: int) -> datetime:
        try:
            _ = _EPOCH + then_ms * _MS
        except OverflowError:
            _refuse("the clock would go beyond the year 9999", then_ms)
        self._now_ms = then_ms
        return self.now()

    def __repr__(self) -> str:
        return f"<Clock at {self.now().isoformat()}>"


class _Standing(runtime.System):
    """The real world, but for the time of day, and without dice: a test can name each pause."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def random(self) -> float:
        return 0.0


_installed: list[Clock] = []


@contextlib.contextmanager
def installed(start: datetime | None) -> Generator[Clock]:
    """Have every store that is opened in this process live by a clock that stands still.

    Within another one its clock goes on: a process has one time.
    """
    if _installed:
        if start is not None:
            raise InvalidTime(
                f"a start {shown(start.isoformat())} was given inside of another test store",
                hint="give it to the outermost store: all of them share one clock",
                value=start,
            )
        yield _installed[-1]
        return
    clock = Clock(start)
    _installed.append(clock)
    try:
        with runtime.install(_Standing(clock)):
            yield clock
    finally:
        _installed.remove(clock)


def _seconds(duration: float | timedelta) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def _milliseconds(what: str, instant: datetime) -> int:
    if instant.utcoffset() is None:
        raise InvalidTime(
            f"{what} {shown(instant.isoformat())} has no time zone, so it is no instant",
            hint="add one, as in datetime(2030, 1, 1, tzinfo=UTC)",
            value=instant,
        )
    # Rounded up, as `run_at` is: what is due at an instant is due when the clock was moved there.
    return -((_EPOCH - instant) // _MS)


def _refuse(cause: str, value: object) -> NoReturn:
    raise InvalidTime(
        cause,
        hint="give a time ahead; a store whose clock goes back is another kind of test",
        value=value,
    )
