"""Loads the Lua files: each with what it includes, and with the name the server knows it by."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

_INCLUDE = re.compile(r"^--@include (\S+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to be sent."""

    name: str
    text: bytes = field(repr=False)
    sha: bytes
    """What the server calls it once it has seen it."""


@cache
def script(name: str) -> Script:
    """Give ``lua/<name>.lua``."""
    text = _pasted(name).encode()
    digest = hashlib.sha1(text, usedforsecurity=False).hexdigest()
    return Script(name, text, digest.encode())


def names() -> list[str]:
    """The names of all scripts, sorted."""
    return sorted(
        entry.name.removesuffix(".lua")
        for entry in _folder().iterdir()
        if entry.name[-4:] == ".lua"
    )


def _pasted(name: str) -> str:
    """Read a script with its includes, each once and one level deep: an include has none."""
    seen: set[str] = set()

    def include(found: re.Match[str]) -> str:
        if found[1] in seen:
            raise ValueError(f"lua/{name}.lua includes {found[1]} twice")
        seen.add(found[1])
        text = _read(found[1])
        if _INCLUDE.search(text):
            raise ValueError(f"lua/{found[1]} is included and includes others itself")
        return text.rstrip("\n")

    return _INCLUDE.sub(include, _read(f"{name}.lua"))


def _read(path: str) -> str:
    return _folder().joinpath(*path.split("/")).read_text(encoding="utf-8")


def _folder() -> Traversable:
    return resources.files("lamplighter.engines.redis").joinpath("lua")
