"""Arguments, metadata and results as JSON: what may go in, and how it comes out again.

JSON has no NaN, no keys but text and no objects; what would be changed silently on the way is
refused at submit, with the path to it, because nobody could repair it later.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, NoReturn, cast

import msgspec

from lamplighter.model.errors import InvalidArguments, InvalidPayload, PayloadTooLarge
from lamplighter.model.names import PAYLOAD_LIMIT, shown

DEPTH_LIMIT = 64

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_NUL = b"\\u0000"
_WHERE = re.compile(r" - at `(?P<key>key in )?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")

_AT_THE_ROOT = {
    "Object missing required field": "there is no argument",
    "Object contains unknown field": "it takes no argument",
}


class NotJson(InvalidPayload):
    """The stored bytes are not a JSON object; no worker of any version can run them."""


class DoesNotFit(InvalidArguments):
    """The stored arguments do not fit the handler's signature in this process."""


# ── out of Python ────────────────────────────────────────────────────────────────────────────


def encode(
    values: Mapping[str, object], root: str = "arguments", secrets: Collection[str] = ()
) -> bytes:
    """Write named values as one JSON object, or say which of them JSON cannot hold.

    What is wrong with one of the ``secrets`` is said without quoting it.
    """
    for name in secrets:
        if name in values:
            _check_secret(name, values[name], root)
    try:
        written = _encoder.encode(values)
    except Exception:  # noqa: BLE001 - dumping a model runs foreign code
        _find_culprit(values, root)
    if not _all_plain(values.values()) or _NUL in written:
        _inspect(values, root, 0)
        # The order of a set differs between processes; equal arguments must be equal bytes.
        written = _ordered.encode(values)
    return written


def _check_secret(name: str, value: object, root: str) -> None:
    try:
        encode({name: value}, root)
        return
    except InvalidPayload as error:
        remedy = error.hint
    # Raised out here, so that the error does not bring along the one that quotes the value.
    raise InvalidPayload(
        f"{root}.{name}: its value, which is secret, cannot be written as JSON", hint=remedy
    )


def encode_value(value: object, root: str) -> bytes:
    """Write any one value as JSON, or say what in it JSON cannot hold."""
    try:
        written = _encoder.encode(value)
    except Exception:  # noqa: BLE001 - dumping a model runs foreign code
        _find_culprit(value, root)
    _inspect(value, root, 0)
    return written


def check_by_name(job_type: object, arguments: object) -> None:
    """Refuse arguments of a job type that are not given by name."""
    if not isinstance(arguments, Mapping):
        # Not quoted: which of them are secret can only be said of arguments with names.
        kind = arguments.__class__.__name__
        raise InvalidArguments(
            f"the arguments of {shown(job_type)} are a {kind}, so they are not given by name",
            hint='give a dict, as in {"order_id": "o-1"}',
        )


def check_size(arguments: int, metadata: int = 0) -> None:
    """Refuse what is too large to stand in the job itself; sizes are in bytes."""
    if arguments + metadata > PAYLOAD_LIMIT:
        beside = f" and the metadata {metadata:,}" if metadata else ""
        raise PayloadTooLarge(
            f"the arguments have {arguments:,} bytes as JSON{beside}, "
            f"the limit is {PAYLOAD_LIMIT:,}",
            hint="store the data elsewhere and submit where it is",
            value=arguments + metadata,
        )


def canonical(written: bytes) -> bytes:
    """Give JSON bytes that are equal for equal data, whatever the order of keys was."""
    return msgspec.json.encode(msgspec.json.decode(written), order="deterministic")


def plain(written: bytes) -> Any:
    """Read JSON as dicts, lists and scalars."""
    return msgspec.json.decode(written)


def _to_json(value: object) -> object:
    """Turn what msgspec does not know into something it does; pydantic models by their shape."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return cast("Callable[..., object]", dump)(mode="json")
    # Subclasses of plain values, such as the scalars of numpy, are written as what they are.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(type(value).__name__)


_encoder = msgspec.json.Encoder(enc_hook=_to_json)
_ordered = msgspec.json.Encoder(enc_hook=_to_json, order="deterministic")


def _all_plain(values: Iterable[object]) -> bool:
    """Tell whether these are scalars that JSON certainly holds, short of NUL characters."""
    for value in values:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            continue
        if kind is int:
            if _SMALLEST <= cast("int", value) <= _LARGEST:
                continue
        elif kind is float and math.isfinite(cast("float", value)):
            continue
        return False
    return True


def _inspect(value: object, path: str, depth: int) -> None:
    """Walk through a value and refuse the first thing JSON cannot hold."""
    if depth > DEPTH_LIMIT:
        _refuse(value, path, f"is nested deeper than {DEPTH_LIMIT} levels", "flatten the data")
    if value is None:
        return
    if isinstance(value, str):
        _inspect_text(value, path)
    elif isinstance(value, (int, float, Decimal)):
        _inspect_number(value, path)
    elif isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                _refuse(key, path, "is a key that is not text", "use text as the keys of dicts")
            _inspect_text(key, f"a key of {path}")
            _inspect(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(cast("Iterable[object]", value)):
            _inspect(item, f"{path}[{index}]", depth + 1)
    else:
        _inspect_object(value, path, depth)


def _inspect_object(value: object, path: str, depth: int) -> None:
    if isinstance(value, Enum):
        _inspect(value.value, path, depth + 1)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _inspect(getattr(value, name), f"{path}.{name}", depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            _inspect(getattr(value, field.name), f"{path}.{field.name}", depth + 1)
    else:
        try:
            written = _encoder.encode(value)
        except Exception as error:  # noqa: BLE001 - dumping a model runs foreign code
            why = "" if isinstance(error, TypeError) else f" ({error})"
            _refuse(
                value,
                path,
                f"is a {type(value).__name__}, which is not JSON data{why}",
                "submit text, numbers, booleans, None, lists and dicts, dataclasses, "
                "or an id by which the handler finds the object",
            )
        if hasattr(value, "model_dump"):
            _inspect(plain(written), path, depth + 1)


def _inspect_number(number: float | Decimal, path: str) -> None:
    if isinstance(number, int):
        if not _SMALLEST <= number <= _LARGEST:
            _refuse(number, path, "does not fit into 64 bits", "submit it as text")
    elif not (number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)):
        _refuse(number, path, "is not a finite number", "leave it out, or submit None")


def _inspect_text(text: str, path: str) -> None:
    if "\0" in text:
        _refuse(text, path, "contains a NUL character", "remove it; not every store can keep it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            _refuse(
                text,
                path,
                "contains half of a surrogate pair, which is not Unicode text",
                "decode the text properly before submitting it",
            )


def _find_culprit(value: object, path: str) -> NoReturn:
    """Name the part of a value that could not be written."""
    _inspect(value, path, 0)
    _refuse(value, path, "cannot be written as JSON", "submit plain JSON data")


def _refuse(value: object, path: str, why: str, remedy: str) -> NoReturn:
    raise InvalidPayload(f"{path}: {_shown(value)} {why}", hint=remedy, value=value) from None


def _shown(value: object) -> str:
    try:
        return shown(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not hide the real error
        return f"an object of type `{type(value).__name__}`"


# ── back into Python ─────────────────────────────────────────────────────────────────────────


def from_json(kind: type, value: object) -> object:
    """Build what msgspec does not know; pydantic models by their shape."""
    validate = getattr(kind, "model_validate", None)
    return value if validate is None else cast("Callable[[object], object]", validate)(value)


def is_model(kind: object) -> bool:
    """Tell whether a class validates and dumps itself as pydantic models do."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def object_in(written: bytes, *, secret: bool = False) -> dict[str, object]:
    """Read a JSON object as plain data, or raise NotJson; what is ``secret`` is not quoted."""
    what = "the stored arguments" if secret else f"the stored arguments {_shown(written)}"
    quoted = None if secret else written
    try:
        value = plain(written)
    except (ValueError, RecursionError) as error:
        raise NotJson(
            f"{what} are not JSON: {error}",
            hint="submit through a client, or store a JSON object of the arguments by name",
            value=quoted,
        ) from error
    if not isinstance(value, dict):
        raise NotJson(
            f"{what} are not a JSON object",
            hint='store the arguments by name, as in {"order_id": "o-1"}',
            value=quoted,
        )
    return cast("dict[str, object]", value)


def explain_misfit(
    error: Exception, written: bytes, root: str, secrets: Collection[str] = ()
) -> tuple[str, object]:
    """Say where and with which value data does not fit its type, for an error message.

    Of what lies below one of the ``secrets`` only that name is told. Where there are some, errors
    of foreign code that name no place are told by their kind, because they may quote anything.
    """
    text = str(error)
    found = _WHERE.search(text)
    if found is None:
        if secrets and not text.startswith(tuple(_AT_THE_ROOT)):
            return f"{type(error).__name__} while they were read", None
        for theirs, ours in _AT_THE_ROOT.items():
            text = text.replace(theirs, ours)
        return _lower(text), None
    first = _STEP.match(found["path"])
    if first is not None and first["name"] in secrets:
        return f"{root}.{first['name']}: its value, which is secret, does not fit", None
    value = _value_at(plain(written), found["path"])
    where = f"{root}{found['path']}"
    if found["key"]:
        where = f"a key of {where}"
    return f"{where}: {_shown(value)}: {_lower(text[: found.start()])}", value


def _value_at(value: Any, path: str) -> object:
    for step in _STEP.finditer(path):
        try:
            value = value[step["name"]] if step["name"] else value[int(step["index"])]
        except (LookupError, TypeError):
            return None
    return cast("object", value)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
