"""Loads the SQL files: one file per verb, statements in it under ``-- name:`` lines.

Parameters are written by name in the files. At load they become numbered ones, in the order of
the statement's ``-- in:`` line, so that hot paths can bind plain tuples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_IN = re.compile(r"^-- in: (.+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, ready to be bound to a tuple in the order of ``names``."""

    text: str
    names: tuple[str, ...]


@cache
def load(verb: str) -> dict[str, Statement]:
    """Read all statements of a verb's file."""
    folder = resources.files("lamplighter.engines.sqlite").joinpath("sql")
    source = folder.joinpath(f"{verb}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(source)
    return {
        name: _statement(f"{verb}.{name}", body)
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def _statement(name: str, body: str) -> Statement:
    declared = _IN.search(body)
    names = tuple(n.strip() for n in declared.group(1).split(",")) if declared else ()
    text = _COMMENT.sub("", body)
    used = set(_PARAMETER.findall(text))
    if used != set(names):
        raise RuntimeError(f"{name}: `-- in:` lists {sorted(names)}, the text uses {sorted(used)}")
    numbers = {parameter: f"?{index}" for index, parameter in enumerate(names, 1)}
    text = _PARAMETER.sub(lambda found: numbers[found.group(1)], text)
    return Statement(" ".join(text.split()).rstrip(";"), names)
