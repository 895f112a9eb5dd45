"""The calendar that is held against the oracle.

The model needs nothing but the standard library and tzdata. So where the package's own
requirements are not installed, as for another version of Python, only the model is imported.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).parents[2] / "src" / "lamplighter"


def _without_requirements() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lamplighter"]:
        del sys.modules[name]
    bare = ModuleType("lamplighter")
    bare.__path__ = [str(SOURCE)]
    sys.modules["lamplighter"] = bare


try:
    importlib.import_module("lamplighter")
except ModuleNotFoundError:
    _without_requirements()

from lamplighter.model.schedule import Cron, Gap, Overlap  # noqa: E402 - once the package is in place

__all__ = ["Cron", "Gap", "Overlap", "resolved"]


def resolved(expression: str, seed: str) -> str:
    """Write an expression with `H` as the plain one that it comes to with this seed."""
    fields = Cron(expression, seed=seed).parsed.fields
    words = expression.split()
    for place, field in enumerate(fields[-len(words) :]):
        if field.hashed:
            values = [str(number) for number in range(60) if field.mask >> number & 1]
            words[place] = ",".join([*values, *_specials(words[place])])
    return " ".join(words)


def _specials(field: str) -> list[str]:
    return [item for item in field.split(",") if item in {"L", "LW"}]
