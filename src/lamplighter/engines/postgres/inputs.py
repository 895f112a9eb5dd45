"""What a caller gave that PostgreSQL cannot take: named, with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import psycopg

from lamplighter.model.errors import InvalidInput
from lamplighter.model.names import shown

_TOO_LARGE = "22003"
_MISSING = "23502"
_AROUND = 10
_NAMED = re.compile(r'"(-?\d+)"')
_PLACE = re.compile(r"%s(?:::(integer|bigint))?")
_BITS = {"integer": 31, "bigint": 63}


def refusal(
    error: psycopg.Error, statement: str, parameters: Sequence[object]
) -> InvalidInput | None:
    """Say what was wrong with the values of a call, if it failed because of them."""
    if error.sqlstate == _TOO_LARGE:
        return _too_large(error, statement, parameters)
    if error.sqlstate == _MISSING and error.diag.column_name == "id":
        return InvalidInput(
            "the id of a new job is none",
            hint="a job id has 26 characters: digits and capital letters",
        )
    if error.sqlstate is None and isinstance(error, psycopg.DataError):
        text = next((one for one in _texts(parameters) if "\0" in one), None)
        place = 0 if text is None else text.index("\0")
        return _unwritable(text or str(error), place, "a NUL character")
    return None


def unwritable(error: UnicodeEncodeError) -> InvalidInput:
    """Say which text cannot be written in UTF-8."""
    character = error.object[error.start]
    return _unwritable(error.object, error.start, f"U+{ord(character):04X}, half of a character,")


def _unwritable(text: str, place: int, what: str) -> InvalidInput:
    part = text[max(0, place - _AROUND) : place + _AROUND]
    return InvalidInput(
        f"the text {shown(part)} holds {what} which PostgreSQL cannot keep",
        hint="take it out of the name or text that was given",
        value=part,
    )


def _too_large(error: psycopg.Error, statement: str, parameters: Sequence[object]) -> InvalidInput:
    """Say which number is too large: for its place, or named by the server, or the largest."""
    numbers = [one for one in parameters if isinstance(one, int)]
    types = (found[1] for found in _PLACE.finditer(statement))
    wide = [
        one
        for one, type_ in zip(parameters, types, strict=False)
        if isinstance(one, int) and type_ and -1 != one >> _BITS[type_] != 0
    ]
    named = _NAMED.search(error.diag.message_primary or "")
    value = wide[0] if wide else int(named[1]) if named else max(numbers, key=abs, default=None)
    return InvalidInput(
        f"{'a number' if value is None else f'the number {value}'} is too large for the store",
        hint="sizes and counts go up to 2147483647, times (in milliseconds) up to 2**62",
        value=value,
    )


def _texts(parameters: Iterable[object]) -> Iterable[str]:
    for one in parameters:
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            yield from _texts(cast("list[Any]", one))
