"""Cron: wall times of a zone, by the expression everybody knows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal, get_args

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.expression import Expression, parse
from lamplighter.model.schedule.instants import SECOND
from lamplighter.model.schedule.walls import Clocks
from lamplighter.model.schedule.zones import timeline

Gap = Literal["next_valid", "skip"]
"""What becomes of a time that the clocks skip: it happens when the gap ends, or not at all."""
Overlap = Literal["first", "both"]
"""What becomes of a time that the clocks show twice: it happens the first time, or both."""


class WallCalendar(Calendar):
    """A calendar of wall times; its clocks know what becomes of them when they change."""

    __slots__ = ()

    timezone: str
    gap: Gap
    overlap: Overlap
    clocks: Clocks

    @property
    @abstractmethod
    def free_running(self) -> bool:
        """Whether it follows elapsed time, whatever ``gap`` and ``overlap`` say."""

    def _after(self, at: int) -> int | None:
        found = self.clocks.after(at // SECOND + 1)
        return None if found is None else found * SECOND

    def _before(self, at: int) -> int | None:
        found = self.clocks.before(-(-at // SECOND) - 1)
        return None if found is None else found * SECOND


@dataclass(frozen=True, slots=True, init=False)
class Cron(WallCalendar):
    """The instants of a cron expression in a time zone.

    Five fields (minute, hour, day of month, month, day of week) or six with the second first.
    An expression whose minute or hour starts with `*` follows elapsed time. All others name times
    of day: ``gap`` says what becomes of one that the clocks skip, ``overlap`` of one they show
    twice. ``seed`` decides what `H` stands for; it is dropped where there is no `H`.
    """

    expression: str
    """The expression as it was given."""
    timezone: str
    """IANA name of the time zone."""
    gap: Gap
    """What becomes of a time that the clocks skip."""
    overlap: Overlap
    """What becomes of a time that they show twice."""
    seed: str
    """What decides where `H` lies."""
    clocks: Clocks = field(compare=False, repr=False)
    """The same as a search over instants."""

    def __init__(
        self,
        expression: str,
        *,
        timezone: str = "UTC",
        gap: Gap = "next_valid",
        overlap: Overlap = "first",
        seed: str = "",
    ) -> None:
        if not isinstance(expression, str) or not isinstance(seed, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidOption(
                f"a cron expression and its seed are text, not {shown(expression)}, {shown(seed)}",
                hint="give the expression as in Cron('30 2 * * *')",
                value=expression,
            )
        found = parse(expression, seed)
        check_policy(gap, overlap)
        put = object.__setattr__
        put(self, "expression", " ".join(expression.split()))
        put(self, "timezone", timezone)
        put(self, "gap", gap)
        put(self, "overlap", overlap)
        put(self, "seed", seed if found.hashed else "")
        free = found.free_running
        clocks = Clocks(
            timeline(timezone), found, skip=free or gap == "skip", both=free or overlap == "both"
        )
        put(self, "clocks", clocks)

    @property
    def parsed(self) -> Expression:
        """The expression as it was understood."""
        return parse(self.expression, self.seed)

    @property
    def free_running(self) -> bool:
        """Whether it follows elapsed time, whatever ``gap`` and ``overlap`` say."""
        return self.parsed.free_running

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import cron  # noqa: PLC0415 - describes all kinds

        return cron(self)


def check_policy(gap: object, overlap: object) -> None:
    """Refuse what is not one of the ways to treat a change of the clocks."""
    for name, value, choices in (
        ("gap", gap, get_args(Gap)),
        ("overlap", overlap, get_args(Overlap)),
    ):
        if value not in choices:
            raise InvalidOption(
                f"{name} is {shown(value)}",
                hint=f"give {' or '.join(map(repr, choices))}",
                value=value,
            )
