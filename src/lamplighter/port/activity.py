"""What workers did and what waits, as a whole: the verbs behind overviews and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.activity import MOST_MINUTES
from lamplighter.model.errors import InvalidInput
from lamplighter.port.verbs import Part

if TYPE_CHECKING:
    from lamplighter.model.activity import Minute, Tally


@dataclass(frozen=True, slots=True)
class Oldest:
    """The job that has been due for longest without running."""

    id: str
    queue: str
    due_ms: int
    """For how long it has been due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What waits in the whole store, at one moment."""

    at_ms: int
    """The store's clock."""
    held: int
    """Waiting jobs with a hold of their own, exact up to 10,000."""
    oldest: Oldest | None
    """None: nothing is due that could be handed out."""
    fire_lag_ms: int
    """For how long the schedule that waits longest should have been looked at; 0: none waits."""


class Activity(Part):
    """Counts of what happened, kept by the minute for a day."""

    async def tally(self, worker: str, number: int, tally: Tally) -> bool:
        """Add what a worker has counted to the minute it is by the store's clock.

        ``number`` grows with each tally of the worker. One that is not above the last is left out
        and answered False: it was written before, and only the reply was lost. Minutes and workers
        of more than a day ago are forgotten, a bounded number at a time.
        """
        return await self._call("tally", worker, number, tally)

    async def activity(self, minutes: int) -> list[Minute]:
        """Return the last minutes, the present one included, oldest first.

        A minute in which nothing was tallied is among them, with zeros. Fewer than 1 and more than
        1,440 are refused with InvalidInput.
        """
        return await self._call("activity", checked_minutes(minutes))

    async def standing(self) -> Standing:
        """Say what is held, what has waited longest, and how late schedules are.

        The oldest job is one that is waiting, due and not held, nor is its tenant; whether its
        queue or type is held does not matter. Cost: free of the backlog. Where more than 1,000 jobs
        run, those of them that are held may count as held.
        """
        return await self._call("standing")


def checked_minutes(minutes: int) -> int:
    """Return a number of minutes, if one may ask for so many."""
    if not 1 <= minutes <= MOST_MINUTES:
        raise InvalidInput(
            f"{minutes} minutes of activity were asked for; a day of it is kept",
            hint=f"ask for 1 to {MOST_MINUTES} minutes",
            value=minutes,
        )
    return minutes
