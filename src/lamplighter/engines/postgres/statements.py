"""Loads the SQL files: migrations in order, and functions with a number that tells them apart.

What several functions have in common, and is too hot to be a function of its own, is a part: a text
with a name, defined once in a file of `sql/parts`, between lines of its own:

    -- @define head_of(turn)
    SELECT job.due, job.seq FROM job WHERE job.lane = @turn@.lane …
    -- @end

A function includes it as `@head_of(t)@`; parts include other parts in the same way. A constant is a
part of one line: `-- @define in_line = 1`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from lamplighter.port.layouts import Layouts

FIRST = 5
"""The version that the first migration makes; older stores are from before the first release."""

_MADE = re.compile(r'^CREATE OR REPLACE (?:FUNCTION|PROCEDURE) "?(\w+)"?', re.MULTILINE)
_VIEW = re.compile(r"^CREATE (?:OR REPLACE )?VIEW (\w+)", re.MULTILINE)
# A function in plain SQL is checked when it is made, so what it needs has to be there before.
_FIRST = ("clock", "types", "turns", "claim")
# Where a function is too small to afford a search path of its own. A schema's name is checked.
_SCHEMA = "@schema@"
_PART = re.compile(
    r"^-- @define ([\w.]+)(?:\(([^)]*)\))?\n(.*?)\n-- @end$", re.MULTILINE | re.DOTALL
)
_NAMED = re.compile(r"^-- @define ([\w.]+) = (.+)$", re.MULTILINE)
_USE = re.compile(r"@(?!schema@)([a-z][\w.]*)(?:\(([^()@]*)\))?@")

TEST_CLOCK = """
CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(pg_catalog.current_setting('lamplighter.now', true), '')::bigint,
                    pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp())
                                     * 1000::numeric)::bigint)
$$
"""
"""For tests that move the store's clock: each call says what time it is."""


@cache
def migrations() -> tuple[str, ...]:
    """All migrations in order; the first makes a store of the version `FIRST`."""
    found = _read("migrations")
    return tuple(found[name] for name in sorted(found))


def layouts() -> Layouts:
    """The versions of a store that this program can use."""
    return Layouts(FIRST, FIRST + len(migrations()) - 1)


def functions(schema: str) -> tuple[str, ...]:
    """The files with the functions, for this schema, in the order in which they can be made."""
    return tuple(file.replace(_SCHEMA, f'"{schema}"') for file in _functions())


@cache
def _functions() -> tuple[str, ...]:
    found = _read("sql")
    rest = sorted(found.keys() - set(_FIRST))
    return tuple(included(found[name], parts()) for name in (*_FIRST, *rest))


@cache
def parts() -> Mapping[str, tuple[list[str], str]]:
    """The parameters and the text of each part."""
    files = "\n".join(_read("sql/parts").values())
    values: dict[str, tuple[list[str], str]] = {
        name: ([], value) for name, value in _NAMED.findall(files)
    }
    return values | {
        name: (_arguments(parameters), text) for name, parameters, text in _PART.findall(files)
    }


def included(text: str, known: Mapping[str, tuple[list[str], str]]) -> str:
    """Put parts where they are named, each line indented like the one that names it."""

    def part(use: re.Match[str]) -> str:
        parameters, body = known[use[1]]
        for parameter, value in zip(parameters, _arguments(use[2]), strict=True):
            body = body.replace(f"@{parameter}@", value)
        line = text[text.rfind("\n", 0, use.start()) + 1 : use.start()]
        indent = " " * (len(line) - len(line.lstrip()))
        return included(body, known).replace("\n", "\n" + indent)

    return _USE.sub(part, text)


def _arguments(text: str | None) -> list[str]:
    return text.split(", ") if text else []


@cache
def fingerprint() -> int:
    """A number that changes with any of the functions; it fits a bigint."""
    digest = hashlib.sha256("\0".join(_functions()).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def function_names() -> list[str]:
    """The names of all functions, however they are called; another program's are not among them."""
    return sorted({name for file in _functions() for name in _MADE.findall(file)})


def view_names() -> list[str]:
    """The names of all views, which are made with the functions."""
    return sorted({name for file in _functions() for name in _VIEW.findall(file)})


def _read(folder: str) -> dict[str, str]:
    place = resources.files("lamplighter.engines.postgres").joinpath(folder)
    return {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in place.iterdir()
        if entry.name.endswith(".sql")
    }
