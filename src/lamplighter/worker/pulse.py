"""The child's sign of life, and what follows when its own loop stood still."""

from __future__ import annotations

from collections.abc import Callable

from lamplighter import runtime
from lamplighter.worker.link import FromSupervisor, Link, Resync, Tick

INTERVAL = 0.25
SILENCE = 0.5
"""After a longer gap the child starts nothing that it has not asked about."""


class Pulse:
    """Ticks, and notices when it could not.

    While the loop stands still, the supervisor may take unstarted claims away. So after a gap
    every claim that is older than the gap's end has to be confirmed before it is started. The
    gap is measured with a clock that counts suspended time.
    """

    def __init__(self, link: Link[FromSupervisor]) -> None:
        self._link = link
        self._last = runtime.boottime()
        self.slept_at = 0.0
        """When the last gap began."""
        self._woke_at = 0.0
        self._asked: list[int] | None = None
        self._asked_at = 0.0

    def check(self) -> float:
        """Look for a gap now; gives the end of the last one."""
        now = runtime.boottime()
        if now - self._last > SILENCE:
            self.slept_at = self._last
            self._woke_at = self._last = now
        return self._woke_at

    def ask(self, numbers: list[int]) -> None:
        """Ask which of these are still ours; one question at a time."""
        if self._asked is None:
            self._asked, self._asked_at = numbers, runtime.boottime()
            self._link.say(Resync(numbers))

    def answered(self) -> tuple[list[int], float]:
        """Return what was asked and when, once the answer has come."""
        asked, self._asked = self._asked or [], None
        return asked, self._asked_at

    async def beat(self, running: Callable[[], int], on_tick: Callable[[], None]) -> None:
        """Tick until cancelled."""
        while True:
            self.check()
            self._last = runtime.boottime()
            self._link.say(Tick(running()))
            on_tick()
            await runtime.sleep(INTERVAL)
