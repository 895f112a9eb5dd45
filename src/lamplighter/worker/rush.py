"""While very many schedules are due at once, children take ordinary jobs in small portions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lamplighter import runtime
from lamplighter.model.job import Claim, Level
from lamplighter.service import Service
from lamplighter.worker.link import MakeWay

if TYPE_CHECKING:
    from lamplighter.worker.process import ChildProcess

PORTION = 8
"""Jobs that a child takes at once meanwhile."""
PAUSE = 0.05
"""Seconds from one portion to the next."""


@runtime_checkable
class Rushing(Protocol):
    """A service before which others make way at times."""

    on_rush: Callable[[float], None] | None
    """Called with the seconds for which they should from now on; 0: no longer."""


def make_way(services: Iterable[Service], children: Callable[[], Iterable[ChildProcess]]) -> None:
    """Tell the children when one of the services wants to go first."""

    def tell(seconds: float) -> None:
        for child in children():
            if child.ready:
                child.say(MakeWay(seconds))

    for service in services:
        if isinstance(service, Rushing):
            service.on_rush = tell


class Way:
    """What a child knows of it."""

    def __init__(self) -> None:
        self._until = 0.0

    def make(self, seconds: float) -> None:
        """Make way for so long, and then no longer, whatever is heard or not."""
        self._until = runtime.boottime() + seconds

    @property
    def made(self) -> bool:
        """Whether others go first just now."""
        return runtime.boottime() < self._until

    def portion(self, room: int) -> int:
        """Return how many of so many jobs to ask for."""
        return min(room, PORTION) if self.made else room

    def pause(self, claims: Sequence[Claim]) -> float:
        """Return the seconds to wait after these were taken.

        None if there are critical ones among them: more of these may follow.
        """
        if not claims or not self.made:
            return 0.0
        return 0.0 if any(claim.job.level == Level.CRITICAL for claim in claims) else PAUSE
