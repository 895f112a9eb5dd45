"""How typed text becomes values: durations, instants, ids and arguments."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from lamplighter import runtime
from lamplighter.model.errors import InvalidPayload, InvalidTime
from lamplighter.model.ids import check_id
from lamplighter.model.names import check_name, shown
from lamplighter.model.retry import Retry

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = r"\d+(?:\.\d+)?\s*(?:ms|s|min|m|h|d|w)"
_DURATION = re.compile(rf"(?:{_PART}\s*)+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)")

_DURATION_FORM = "write seconds or a duration: 90, 250ms, 15m, 2h, 1h30m, 3d"
_INSTANT_FORM = "write it with its time zone: 2030-01-31T12:00:00Z or 2030-01-31T14:00:00+02:00"
_ARGUMENTS_FORM = (
    "write the arguments as name=value, as in order=o-1 amount=5, or as one JSON object, as in "
    '\'{"order": "o-1", "amount": 5}\''
)
_METADATA_FORM = """write one JSON object, as in '{"source": "import"}'"""
_RETRY_FORM = """write one JSON object, as in '{"max_attempts": 3, "fixed": 60}'"""


def ids(texts: Iterable[str]) -> list[str]:
    """Read job ids; nothing is done to any job while one of them cannot be an id."""
    return list(dict.fromkeys(check_id(text) for text in texts))


def names(what: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Read names to look for; one that nothing can have is told, instead of found nowhere."""
    return tuple(check_name(what, text) for text in texts)


# ── time ─────────────────────────────────────────────────────────────────────────────────────


def duration(what: str, text: str) -> float:
    """Read a duration in seconds."""
    plain = text.strip().lower()
    if plain.startswith("-") and _duration(plain[1:]) is not None:
        raise InvalidTime(f"{what} {shown(text)} is negative", hint=_DURATION_FORM, value=text)
    seconds = _duration(plain)
    if seconds is None:
        raise InvalidTime(
            f"{what} {shown(text)} is not a duration", hint=_DURATION_FORM, value=text
        )
    return seconds


def instant(what: str, text: str) -> datetime:
    """Read an instant; one without a time zone could be any of many."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidTime(
            f"{what} {shown(text)} is not a time", hint=_INSTANT_FORM, value=text
        ) from None
    if found.utcoffset() is None:
        raise InvalidTime(f"{what} {shown(text)} has no time zone", hint=_INSTANT_FORM, value=text)
    return found


def moment_ms(what: str, text: str | None) -> int | None:
    """Read a point in the past: an instant, or how long ago it was."""
    if text is None:
        return None
    seconds = _duration(text.strip().lower())
    hint = f"{_INSTANT_FORM}; or say how long ago: 15m, 2h, 3d"
    if seconds is not None:
        found = runtime.now_ms() - int(seconds * 1000)
    else:
        try:
            found = int(instant(what, text).timestamp() * 1000)
        except InvalidTime as error:
            raise InvalidTime(error.cause, hint=hint, value=text) from None
    if found < 0:
        raise InvalidTime(f"{what} {shown(text)} is before the year 1970", hint=hint, value=text)
    return found


def _duration(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    else:
        return None
    # Of very many digits comes a number without end.
    return seconds if math.isfinite(seconds) else None


# ── arguments ────────────────────────────────────────────────────────────────────────────────


def arguments(texts: Sequence[str], schema: Mapping[str, Any]) -> dict[str, object]:
    """Read a job's arguments: one JSON object, or name=value each.

    The schema of the type, if known, says which values are text: `order=7` is then "7" and not 7.
    """
    if len(texts) == 1 and texts[0].lstrip().startswith("{"):
        return _object("the text of the arguments", texts[0], _ARGUMENTS_FORM)
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidPayload(
                f"the argument {shown(text)} is neither name=value nor a JSON object",
                hint=_ARGUMENTS_FORM,
                value=text,
            )
        if name in found:
            raise InvalidPayload(
                f"the argument `{name}` is given twice", hint=_ARGUMENTS_FORM, value=text
            )
        found[name] = value if _is_text(schema, name) else _guessed(value)
    return found


def metadata(text: str | None) -> dict[str, object] | None:
    """Read what travels with a job beside its arguments."""
    return None if text is None else _object("the metadata", text, _METADATA_FORM)


def retry(text: str | None) -> Retry | None:
    """Read how a failed job is tried again."""
    if text is None:
        return None
    return Retry.from_options(_object("the retry policy", text, _RETRY_FORM))


def _object(what: str, text: str, form: str) -> dict[str, object]:
    try:
        found: object = _json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(
            f"{what} {shown(text)} is not JSON: {error}", hint=form, value=text
        ) from None
    if not isinstance(found, dict):
        raise InvalidPayload(f"{what} {shown(text)} is not a JSON object", hint=form, value=text)
    return cast("dict[str, object]", found)


def _guessed(text: str) -> object:
    try:
        return _json(text)
    except _Twice as error:
        raise InvalidPayload(
            f"the value {shown(text)} is ambiguous: {error}", hint=_ARGUMENTS_FORM, value=text
        ) from None
    except ValueError:
        return text


def _json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)


class _Twice(ValueError):
    """A key that stands twice in one object: one of its values would be lost."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise _Twice(f"the key {shown(name)} stands twice in one object")
        found[name] = value
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _is_text(schema: Mapping[str, Any], name: str) -> bool:
    described = schema.get("properties", {}).get(name, {})
    kinds = [described, *described.get("anyOf", ())]
    types = {kind.get("type") for kind in kinds} - {None, "null"}
    return types == {"string"}
