"""How the loops of a process are: a snapshot that every way of asking for health reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable


class Loop(Protocol):
    """A service, as far as its health is concerned."""

    name: str
    progress: float
    restarts: int

    @property
    def late(self) -> bool:
        """Whether no step has come to a good end for much longer than it should take."""
        ...

    @property
    def stuck(self) -> bool:
        """Whether a step goes on that was to be given up long ago."""
        ...


class Counts(Protocol):
    """What a loop that fires schedules has done so far."""

    fired: int
    queued: int
    stale: int
    unreadable: int
    lag_ms: int
    resting: bool

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many occurrences were skipped, by reason."""
        ...

    @property
    def behind(self) -> bool:
        """Whether occurrences fall due faster than they are fired."""
        ...


@runtime_checkable
class Firing(Protocol):
    """A loop that fires schedules."""

    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHealth:
    """One loop."""

    name: str
    idle: float
    """Seconds since a step has come to a good end."""
    restarts: int
    """How many of its steps did not end and were begun anew."""
    late: bool
    stuck: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FireHealth:
    """The firing of schedules: what was done since the process began, and how late it is."""

    lag_ms: int
    fired: int
    queued: int
    stale: int
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    unreadable: int
    behind: bool
    newest_first: bool
    """Whether the newest occurrences go before older ones, because it is behind."""
    resting: bool
    """Whether more is due than can be fired at once, and part of the time is left to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A process at one moment. Nothing in it changes afterwards."""

    loops: tuple[LoopHealth, ...]
    fire: FireHealth | None = None
    """None: this process fires no schedules."""

    @property
    def late(self) -> tuple[str, ...]:
        """Name the loops without progress."""
        return tuple(loop.name for loop in self.loops if loop.late)

    @property
    def stuck(self) -> tuple[str, ...]:
        """Name the loops that only a new process can help."""
        return tuple(loop.name for loop in self.loops if loop.stuck)

    @property
    def well(self) -> bool:
        """Whether all is as it should be."""
        return not self.why

    @property
    def why(self) -> tuple[str, ...]:
        """Say what is not as it should be, in words that stay the same as long as it is so."""
        found: list[str] = []
        if self.stuck:
            found.append(f"stuck: {', '.join(self.stuck)}")
        if slow := [name for name in self.late if name not in self.stuck]:
            found.append(f"no progress: {', '.join(slow)}")
        if self.fire is not None and self.fire.behind:
            first = ", the newest go first" if self.fire.newest_first else ""
            found.append(f"schedules are fired late{first}")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"well": self.well, "why": list(self.why), **asdict(self)}


def look(loops: Iterable[Loop], now: float, *, newest_first: bool = False) -> Health:
    """Look at loops; ``newest_first`` is the setting for the time when schedules are behind."""
    every = tuple(loops)
    firing = next((loop for loop in every if isinstance(loop, Firing)), None)
    return Health(
        loops=tuple(
            LoopHealth(
                name=loop.name,
                idle=max(0.0, now - loop.progress),
                restarts=loop.restarts,
                late=loop.late,
                stuck=loop.stuck,
            )
            for loop in every
        ),
        fire=None if firing is None else _fire(firing.counts, newest_first=newest_first),
    )


def _fire(counts: Counts, *, newest_first: bool) -> FireHealth:
    return FireHealth(
        lag_ms=counts.lag_ms,
        fired=counts.fired,
        queued=counts.queued,
        stale=counts.stale,
        skipped=dict(counts.skipped),
        unreadable=counts.unreadable,
        behind=counts.behind,
        newest_first=newest_first and counts.behind,
        resting=counts.resting,
    )
