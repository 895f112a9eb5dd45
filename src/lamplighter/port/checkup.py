"""What a check-up of a store finds: one finding per check, and what survives which accident."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lamplighter.model.counts import counted

if TYPE_CHECKING:
    from collections.abc import Mapping


class Grade(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    WARNING = "warning"
    """It works, but not for ever, or not as well as it could."""
    PROBLEM = "problem"
    """It does not work, or does not keep what was promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check came to."""

    check: str
    """The name of the check, the same on every run."""
    grade: Grade
    text: str
    """What was found, with its value and, where something is wrong, its cause."""
    remedy: str = ""
    """What to do about it; empty when all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What all checks came to."""

    engine: str
    findings: tuple[Finding, ...]
    survives: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whether an acknowledged job survives: the accident, and the answer in words."""

    @property
    def problems(self) -> int:
        """Count what does not work."""
        return sum(finding.grade is Grade.PROBLEM for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Overdue:
    """Schedules that are due, and that nobody has taken in hand."""

    number: int = 0
    """How many; of very many, only so many as were looked at."""
    oldest_ms: int = 0
    """For how long the first of them has been due."""


ON_TIME = Overdue()
LATE_MS, TOO_LATE_MS = 10_000, 60_000
"""Somebody who died with schedules in hand is no reason to complain."""


def schedules(overdue: Overdue | None) -> Finding:
    """Judge whether schedules are fired when they are due; None: that could not be read."""
    check = "schedules"
    if overdue is None:
        return note(check, "not looked at: the store cannot be read")
    if not overdue.number:
        return ok(check, "none is overdue")
    many = counted(overdue.number, "is", "are")
    text = f"{many} due, the first for {overdue.oldest_ms / 1000:,.1f} s"
    if overdue.oldest_ms > TOO_LATE_MS:
        return problem(
            check,
            f"{text}: nobody fires them",
            "is a worker running? `lamplighter workers` tells; start one without --no-coordinator",
        )
    if overdue.oldest_ms > LATE_MS:
        return warning(
            check,
            f"{text}: they are fired more slowly than they fall due, or not at all",
            "look whether workers run (`lamplighter workers`), and start more of them",
        )
    return ok(check, text)


def ok(check: str, text: str) -> Finding:
    """All is well."""
    return Finding(check=check, grade=Grade.OK, text=text)


def note(check: str, text: str, remedy: str = "") -> Finding:
    """Something worth knowing."""
    return Finding(check=check, grade=Grade.NOTE, text=text, remedy=remedy)


def warning(check: str, text: str, remedy: str) -> Finding:
    """Something that should be mended."""
    return Finding(check=check, grade=Grade.WARNING, text=text, remedy=remedy)


def problem(check: str, text: str, remedy: str) -> Finding:
    """Something that must be mended."""
    return Finding(check=check, grade=Grade.PROBLEM, text=text, remedy=remedy)
