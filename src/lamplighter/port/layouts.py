"""Layouts of a store: which of them this program can use, and how it refuses the others."""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter.model.errors import StoreNewer, StoreOlder


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of an engine: the first that can be migrated, and the one that is written now."""

    first: int
    newest: int

    def check(self, found: int, *, store: str, value: str, migrate: bool, remedy: str) -> None:
        """Raise unless a store of this layout can be used, or migrated where that is asked for.

        ``store`` names the store in the message, ``remedy`` is the command that migrates it. Zero
        is an empty place, which is filled.
        """
        if found > self.newest:
            raise StoreNewer(
                f"{store} has version {found}; this program knows versions up to {self.newest}",
                hint="update lamplighter on this machine",
                value=value,
            )
        if 0 < found < self.first:
            raise StoreOlder(
                f"{store} has version {found}, from before the first release; this program needs "
                f"version {self.newest}, and versions before {self.first} cannot be migrated",
                hint="let the program that made it finish its jobs, and start with a new store",
                value=value,
            )
        if 0 < found < self.newest and not migrate:
            raise StoreOlder(
                f"{store} has version {found}; this program needs version {self.newest}",
                hint=f"run: {remedy}",
                value=value,
            )

    def to_apply(self, found: int, steps: tuple[str, ...]) -> tuple[str, ...]:
        """Return the migrations that a store of this layout still lacks."""
        return steps[found - self.first + 1 :] if found else steps
