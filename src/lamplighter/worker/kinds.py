"""Which job types of a program share a process, and which run alone, at present."""

from __future__ import annotations

from collections.abc import Callable

from lamplighter.model.isolation import Isolation
from lamplighter.registry import Registry


class Kinds:
    """The types of a program in two lists; a type that is sentenced moves to the other."""

    def __init__(self, registry: Registry, is_sentenced: Callable[[str], bool]) -> None:
        names = registry.names()
        self._is_sentenced = is_sentenced
        self._process = tuple(
            name for name in names if registry.get(name).isolation is Isolation.PROCESS
        )
        self._shared = tuple(name for name in names if name not in self._process)

    def shared(self) -> tuple[str, ...]:
        """Types whose jobs run beside others."""
        if not any(map(self._is_sentenced, self._shared)):
            return self._shared
        return tuple(name for name in self._shared if not self._is_sentenced(name))

    def alone(self) -> tuple[str, ...]:
        """Types whose jobs run alone."""
        sentenced = tuple(name for name in self._shared if self._is_sentenced(name))
        return (*self._process, *sentenced) if sentenced else self._process
