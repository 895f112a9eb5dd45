"""Secret arguments: which values they are, and how texts and listings are kept free of them.

The store holds arguments as they were submitted, because the handler needs them. Everything that
is made to be read by people goes through here first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast
from urllib.parse import quote, quote_plus

import msgspec

from lamplighter.model.job import Claim

HIDDEN = "•••"
"""What stands in the place of a secret value."""
SHORTEST = 4
"""Characters. Anything shorter occurs in every other text, which would become unreadable."""
QUOTED = 40
"""Characters of a long value that error messages quote."""

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COMMON = frozenset({"true", "false", "null", "none"})
_FEW = 8
"""Alternatives that are simply tried one after the other."""
_SPLITS = SHORTEST
"""No value is shorter, so the alternatives can be told apart by so many characters."""


def redactor(args: bytes, secrets: Collection[str]) -> Callable[[str], str] | None:
    """Make a function that hides the values of secret arguments in any text; None: there are none.

    A value is found as it is, as Python and JSON write it between quotes, as it stands in a URL,
    and each line of it by itself. Values too short or too common to be hidden are left. Never
    raises; of arguments that nobody can read all text is secret.
    """
    if not secrets:
        return None
    texts = {text for value in _values(args, secrets) for text in _forms(value)}
    longest_first = sorted(filter(_can_be_hidden, texts), key=lambda text: (-len(text), text))
    if not longest_first:
        return None
    return partial(re.compile(_any_of(longest_first)).sub, HIDDEN)


def concealed(args: bytes, secrets: Collection[str]) -> bytes:
    """Return the arguments for a listing: JSON, with every secret value replaced whatever it is.

    Without secrets they are given as they are; what is no JSON object is hidden as a whole.
    """
    if not secrets:
        return args
    found = _read(args)
    if not isinstance(found, dict):
        return msgspec.json.encode(HIDDEN)
    values = cast("dict[str, object]", found)
    return msgspec.json.encode(
        {name: HIDDEN if name in secrets else value for name, value in values.items()}
    )


def arguments_of(claim: Claim) -> Mapping[str, object]:
    """Return the arguments of a job that runs, the values of secret ones hidden.

    For middleware: what it may show to an error tracker. Empty if they cannot be read.
    """
    return readable(concealed(claim.job.args, claim.job.extras.secrets))


def readable(args: bytes) -> Mapping[str, object]:
    """Return the arguments that JSON holds; of anything else, none."""
    found = _read(args)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def all_known(claim: Claim, secrets: Collection[str]) -> Claim:
    """Return a claim that names these secret arguments, too: those of its type."""
    extras = claim.job.extras
    named = tuple(sorted({*extras.secrets, *secrets}))
    return replace(claim, job=replace(claim.job, extras=replace(extras, secrets=named)))


def _read(args: bytes) -> Any:
    """Read JSON; what is none is text."""
    try:
        return msgspec.json.decode(args)
    except (ValueError, RecursionError):
        return args.decode(errors="replace")


def _values(args: bytes, secrets: Collection[str]) -> Iterator[object]:
    found = _read(args)
    if not isinstance(found, dict):
        yield from _leaves(found)
        return
    values = cast("dict[str, object]", found)
    for name in secrets:
        yield from _leaves(values.get(name))


def _leaves(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(cast("dict[str, object]", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))
        else:
            yield value


def _forms(value: object) -> Iterable[str]:
    """Return the ways in which a value may stand in a text."""
    if value is None or isinstance(value, bool):
        return ()
    if not isinstance(value, str):
        return {repr(value), msgspec.json.encode(value).decode()}
    forms = {value, value.strip(), *(line.strip() for line in value.splitlines())}
    forms |= {_CONTROLS.sub("", text) for text in forms}  # as they stand in a log
    forms |= {
        written
        for text in tuple(forms)
        for written in (
            repr(text)[1:-1],
            repr("'\"" + text)[4:-1],  # as part of a longer text that has both kinds of quotes
            ascii(text)[1:-1],
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            quote(text, safe=""),
            quote(text),
            quote_plus(text),
        )
    }
    return forms | {form[:QUOTED] for form in forms}


def _can_be_hidden(text: str) -> bool:
    return len(text) >= SHORTEST and text.lower() not in _COMMON


def _any_of(texts: list[str], splits: int = _SPLITS) -> str:
    """Write a pattern for any of these texts, the longest first.

    Many of them are told apart by their first characters: trying each one everywhere would be
    slow, and arguments may hold thousands.
    """
    if len(texts) <= _FEW or not splits:
        return "|".join(map(re.escape, texts))
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(text[0], []).append(text[1:])
    return "|".join(
        f"{re.escape(first)}(?:{_any_of(rests, splits - 1)})" for first, rests in groups.items()
    )
