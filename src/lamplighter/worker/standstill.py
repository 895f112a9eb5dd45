"""A process that stood still: stopped, or on a machine that slept."""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter.worker.run import renewal_round


@dataclass(slots=True)
class Standstill:
    """The last time that a loop did not run for much longer than it meant to.

    A lease that nobody could renew meanwhile may have ended, but most likely nobody has taken the
    job: whoever would have done so slept as well, or waits. So after waking leases are renewed
    first, and only what the store then calls lost is stopped. What was in doubt before the
    standstill stays in doubt, and no excuse lasts for longer than one round of renewals.
    """

    lease: float
    began: float = 0.0
    ended: float = 0.0

    def note(self, began: float, ended: float) -> None:
        """Take in a standstill that is over."""
        self.began, self.ended = began, ended

    def excuses(self, end: float, now: float) -> bool:
        """Tell whether a lease that was believed in until ``end`` is still to be renewed."""
        return end > self.began and now < self.ended + renewal_round(self.lease) + 1.0
