"""A process that stood still: stopped, or on a machine that slept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Standstill:
    """The last time that a loop did not run for much longer than it meant to.

    A lease that nobody could renew meanwhile may have ended, but most likely nobody has taken the
    job: whoever would have done so slept as well, or waits. So after waking leases are renewed
    first, and only what the store then calls lost is stopped. What was in doubt before the
    standstill stays in doubt. The network and the store may need a while to wake, too: an excuse
    lasts for a third of a lease, and for one call that was under way.
    """

    lease: float
    began: float = 0.0
    ended: float = 0.0

    def note(self, began: float, ended: float) -> None:
        """Take in a standstill that is over."""
        self.began, self.ended = began, ended

    def excuses(self, end: float, now: float) -> bool:
        """Tell whether a lease that was believed in until ``end`` is still to be renewed."""
        return end > self.began and now < self.ended + self.lease / 3 + 1.0
