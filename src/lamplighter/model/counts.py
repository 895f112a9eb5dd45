"""How a count is written for people: with its noun, in the number that fits."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count and what is counted: `1 job`, `2 jobs`, `1,200 children are`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
