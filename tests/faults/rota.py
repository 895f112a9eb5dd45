"""Schedules of a run, and when they are due: by plain arithmetic, no calendar is asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lamplighter.model.recurring import CatchUp, Overlap, Policy, Spec, Template, jitter_of
from lamplighter.model.schedule import EPOCH, Calendar, Cron, Interval, tzdata_version
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule
from lamplighter.port.store import Engine

KEPT = 10_000
"""Runs that are remembered: all of them, so that they can be judged."""
TYPE = "lamp"


@dataclass(frozen=True, slots=True)
class Duty:
    """A schedule: instants that are a fixed time apart, written as an interval or as cron."""

    id: str
    step_ms: int
    policy: Policy
    phase_ms: int = 0
    cron: bool = False

    @property
    def offset_ms(self) -> int:
        """How much later than its instants it is fired."""
        return jitter_of("default", self.id, self.policy.jitter_ms)

    def first_after(self, at_ms: int) -> int:
        return at_ms + self.step_ms - (at_ms - self.phase_ms) % self.step_ms

    def last_until(self, at_ms: int) -> int:
        at_ms = at_ms if self.policy.end_ms is None else min(at_ms, self.policy.end_ms)
        return at_ms - (at_ms - self.phase_ms) % self.step_ms

    def count(self, after_ms: int, until_ms: int) -> int:
        """Count the instants later than one moment and not later than another."""
        return max(0, (self.last_until(until_ms) - self.first_after(after_ms)) // self.step_ms + 1)

    def between(self, after_ms: int, until_ms: int) -> list[int]:
        first = self.first_after(after_ms)
        return [first + n * self.step_ms for n in range(self.count(after_ms, until_ms))]

    def new(self, now_ms: int) -> NewSchedule:
        """Give it as it is put."""
        template = Template(type=TYPE, args=b"{}")
        return NewSchedule(
            id=self.id,
            spec=specs.to_text(
                Spec(calendar=self._calendar(), template=template, policy=self.policy)
            ),
            tenant=template.tenant,
            type=template.type,
            due_ms=self.first_after(now_ms) + self.offset_ms,
            zones=tzdata_version(),
        )

    def _calendar(self) -> Calendar:
        seconds = self.step_ms // 1000
        if self.cron:
            return Cron(f"*/{seconds} * * * * *")
        return Interval(seconds, anchor=EPOCH + timedelta(milliseconds=self.phase_ms))


_WINDOWS_MS = (3_600_000, 3_600_000, 1_500, 300)
_SECONDS = (1, 1, 2, 3)
_CRON_SECONDS = (1, 2, 5)


def mixed(count: int, end_ms: int) -> list[Duty]:
    """Give schedules of every catch-up mode and overlap policy; a third just makes up for all."""
    modes = [(CatchUp.ALL, Overlap.ALLOW)] * 7
    modes += [(mode, overlap) for mode in CatchUp for overlap in Overlap]
    return [_mixed(number, *modes[number % len(modes)], end_ms) for number in range(count)]


def _mixed(number: int, mode: CatchUp, overlap: Overlap, end_ms: int) -> Duty:
    dice = random.Random(number)
    policy = Policy(
        catch_up=mode,
        overlap=overlap,
        window_ms=dice.choice(_WINDOWS_MS),
        jitter_ms=dice.choice((0, 0, 0, 700)),
        end_ms=end_ms,
        keep_succeeded=KEPT,
        keep_failed=KEPT,
    )
    cron = dice.random() < 1 / 2
    seconds = dice.choice(_CRON_SECONDS if cron else _SECONDS)
    phase_ms = 0 if cron else dice.randrange(seconds) * 1000
    return Duty(f"duty-{number:04}", seconds * 1000, policy, phase_ms, cron)


def plain(name: str, seconds: int, *, phase_ms: int = 0, **policy: object) -> Duty:
    """Give one that nothing gets in the way of."""
    base = Policy(overlap=Overlap.ALLOW, keep_succeeded=KEPT, keep_failed=KEPT)
    return Duty(name, seconds * 1000, replace(base, **policy), phase_ms)


async def put(engine: Engine, duties: Sequence[Duty], now_ms: int) -> None:
    """Put schedules into a store."""
    size = engine.capabilities.max_batch
    for start in range(0, len(duties), size):
        some = [one.new(now_ms) for one in duties[start : start + size]]
        await engine.schedules.put_schedules(some, by="faults")
