"""Loads the SQL files: migrations in order, and functions with a number that tells them apart."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

from lamplighter.port.layouts import Layouts

FIRST = 5
"""The version that the first migration makes; older stores are from before the first release."""

_MADE = re.compile(r'^CREATE OR REPLACE (?:FUNCTION|PROCEDURE) "?(\w+)"?', re.MULTILINE)
_VIEW = re.compile(r"^CREATE (?:OR REPLACE )?VIEW (\w+)", re.MULTILINE)
# A function in plain SQL is checked when it is made, so what it needs has to be there before.
_FIRST = ("clock", "turns", "claim")
# Where a function is too small to afford a search path of its own. A schema's name is checked.
_SCHEMA = "@schema@"

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
    return tuple(found[name] for name in (*_FIRST, *rest))


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
