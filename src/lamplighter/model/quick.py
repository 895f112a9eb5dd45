"""Makes frozen dataclasses that are quick to build.

A frozen dataclass sets each of its fields through `object.__setattr__`, which is most of what a
batch of jobs costs a worker to read. A quick one is, while it is built, of a twin class with the
same slots that is not frozen; after that nobody sees the twin.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")


def quick(made: type[T]) -> type[T]:
    """Replace the constructor of a frozen dataclass with slots by one that does the same.

    @quick
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Point: ...
    """
    facts = fields(cast("Any", made))
    known: dict[str, Any] = {
        "made": made,
        "twin": type(made.__name__, (), {"__slots__": tuple(one.name for one in facts)}),
        "turn_into": object.__setattr__,
    }
    given: list[str] = []
    written: list[str] = []
    for one in facts:
        if one.default_factory is not MISSING or not one.init:
            raise TypeError(f"{made.__name__}.{one.name} is not simply given: it cannot be quick")
        if one.kw_only and "*" not in given:
            given.append("*")
        if one.default is MISSING:
            given.append(one.name)
        else:
            known[f"usual_{one.name}"] = one.default
            given.append(f"{one.name}=usual_{one.name}")
        written.append(f"    self.{one.name} = {one.name}")
    text = "\n".join(
        [
            f"def __init__(self, {', '.join(given)}):",
            "    turn_into(self, '__class__', twin)",
            *written,
            "    self.__class__ = made",
        ]
    )
    exec(text, known)  # noqa: S102 - of names that this program has declared
    made.__init__ = known["__init__"]
    return made
