"""Where a handler runs: beside others in a shared process, or alone in one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import cast

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown


class Isolation(StrEnum):
    """How much a handler shares with others."""

    SHARED = "shared"
    """One process runs many handlers: coroutines on its loop, functions in its threads."""
    PROCESS = "process"
    """A process runs one handler at a time; its death concerns nobody else."""

    @classmethod
    def of(cls, name: object) -> Isolation:
        """Read an isolation as users write it."""
        try:
            return cls(cast("str", name))
        except ValueError:
            raise InvalidOption(
                f"unknown isolation {shown(name)}",
                hint=f"use one of {', '.join(choice.value for choice in cls)}",
                value=name,
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one job may use of its machine, when it runs in a process of its own.

    None: no limit beyond those of the worker.
    """

    memory_mb: int | None = None
    """Megabytes of address space; beyond them Python raises MemoryError."""
    cpu_seconds: int | None = None
    """Seconds of CPU time of the job; beyond them its process is killed."""
    open_files: int | None = None
    """Open files and sockets."""
    processes: int | None = None
    """Processes and threads of the worker's user, as the system counts them."""

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value: object = getattr(self, name)
            if value is None:
                continue
            if type(value) is not int or not low <= value <= high:
                raise InvalidOption(
                    f"the limit {name} is {shown(value)}",
                    hint=f"give a whole number between {low:,} and {high:,}",
                    value=value,
                )

    def given(self) -> dict[str, int]:
        """Return the limits that are set, by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


_BOUNDS: Mapping[str, tuple[int, int]] = {
    "memory_mb": (64, 1 << 20),
    "cpu_seconds": (1, 366 * 86_400),
    "open_files": (16, 1 << 20),
    "processes": (1, 1 << 20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a process is like that runs jobs of a type alone; equal ones can be shared in turn."""

    limits: Limits = Limits()
    env: tuple[tuple[str, str], ...] = ()
    """Variables beside those of the worker, sorted by name."""
    cwd: str | None = None


ORDINARY = Surroundings()
