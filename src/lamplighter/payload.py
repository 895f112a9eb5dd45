"""Arguments, metadata and results as JSON: what may go in, and how it comes out again.

JSON has no NaN, no keys but text, no bytes and no objects; what would be changed silently on the
way is refused at submit, with the path to it, because nobody could repair it later. Keys keep
their order.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, NoReturn, cast

import msgspec

from lamplighter import fidelity
from lamplighter.fidelity import ARRAYS
from lamplighter.model.errors import InvalidArguments, InvalidPayload, PayloadTooLarge
from lamplighter.model.names import PAYLOAD_LIMIT, shown

DEPTH_LIMIT = 64

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_EXACT = 2**53
"""Whole numbers up to this one are kept by a reader that reads them as floats."""
_NUL = b"\\u0000"
_WHERE = re.compile(r" - at `(?P<key>key in )?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")

_AT_THE_ROOT = {
    "Object missing required field": "the argument {} is missing",
    "Object contains unknown field": "it takes no argument {}",
}


class NotJson(InvalidPayload):
    """The stored bytes are not a JSON object; no worker of any version can run them."""


class DoesNotFit(InvalidArguments):
    """The stored arguments do not fit the handler's signature in this process."""


# ── out of Python ────────────────────────────────────────────────────────────────────────────


Written = tuple[bytes, bool]
"""JSON, and whether it has something that is not JSON data: only an annotation of the reader brings
that back. No class: one is made for each submission."""


def encode(
    values: Mapping[str, object], root: str = "arguments", secrets: Collection[str] = ()
) -> bytes:
    """Write named values as one JSON object for a reader of whom nothing is known.

    Raises InvalidPayload that names what JSON cannot hold. What is wrong with one of the
    ``secrets`` is said without quoting it.
    """
    return write(values, root, secrets, blind=True)[0]


def write(
    values: Mapping[str, object], root: str, secrets: Collection[str], *, blind: bool
) -> Written:
    """Write named values as one JSON object.

    ``blind``: nobody is known who would read bytes as bytes. Otherwise the reader is to be asked
    whether it gets back what is not JSON data: `fidelity.first_change`.
    """
    for name in secrets:
        if name in values:
            _check_secret(name, values[name], root, blind=blind)
    try:
        written = _encoder.encode(values)
    except Exception:  # noqa: BLE001 - dumping a model runs foreign code
        _find_culprit(values, root)
    if _all_plain(values.values()) and _NUL not in written:
        return written, False
    found = _Found(blind=blind)
    found.inspect(values, root, 0)
    if found.sets:
        # The order of a set differs between processes; equal arguments must be equal bytes.
        written = _encoder.encode(_ordered(values))
    return written, found.exotic or found.large


def _check_secret(name: str, value: object, root: str, *, blind: bool) -> None:
    try:
        write({name: value}, root, (), blind=blind)
        return
    except InvalidPayload as error:
        remedy = error.hint
    # Raised out here, so that the error does not bring along the one that quotes the value.
    raise InvalidPayload(
        f"{root}.{name}: its value, which is secret, cannot be written as JSON", hint=remedy
    )


def encode_value(value: object, root: str, *, plain: bool = False) -> bytes:
    """Write any one value as JSON, or say what in it JSON cannot hold.

    ``plain``: it is read as plain data, so that what is not is refused.
    """
    written, found = _encode_and_inspect(value, root)
    if found.exotic and plain:
        _find_exotic(value, root)
    return written


def encode_value_for(value: object, root: str) -> Written:
    """Write any one value for a reader that is asked whether it gets it back."""
    written, found = _encode_and_inspect(value, root)
    return written, found.exotic or found.large


def _encode_and_inspect(value: object, root: str) -> tuple[bytes, _Found]:
    try:
        written = _encoder.encode(value)
    except Exception:  # noqa: BLE001 - dumping a model runs foreign code
        _find_culprit(value, root)
    found = _Found(blind=False)
    found.inspect(value, root, 0)
    return written, found


def check_by_name(job_type: object, arguments: object) -> None:
    """Refuse arguments of a job type that are not given by name."""
    if not isinstance(arguments, Mapping):
        # Not quoted: which of them are secret can only be said of arguments with names.
        kind = arguments.__class__.__name__
        raise InvalidArguments(
            f"the arguments of {shown(job_type)} are a {kind}, so they are not given by name",
            hint='give a dict, as in {"order_id": "o-1"}',
        )


def check_size(arguments: int, extras: int = 0) -> None:
    """Refuse what is too large to stand in the job itself; sizes are in bytes."""
    if arguments + extras > PAYLOAD_LIMIT:
        beside = f" and metadata and retry policy {extras:,}" if extras else ""
        raise PayloadTooLarge(
            f"the arguments have {arguments:,} bytes as JSON{beside}, "
            f"the limit is {PAYLOAD_LIMIT:,}",
            hint="store the data elsewhere and submit where it is",
            value=arguments + extras,
        )


def canonical(written: bytes) -> bytes:
    """Return JSON bytes that are equal for equal data, whatever the order of keys was."""
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


def _ordered(value: object) -> object:
    """Return the same value with every set as a list whose order is that of its members."""
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {key: _ordered(item) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, (set, frozenset)):
        members = [_ordered(item) for item in cast("Iterable[object]", value)]
        return sorted(members, key=_encoder.encode)
    if isinstance(value, msgspec.Struct):
        return _with_ordered(value, value.__struct_fields__, msgspec.structs.force_setattr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return _with_ordered(value, names, object.__setattr__)
    return value


def _with_ordered(
    value: object, names: Iterable[str], put: Callable[[Any, str, object], None]
) -> object:
    """Return a copy to be written, which may have a list where its type has a set."""
    changed = copy.copy(value)
    for name in names:
        put(changed, name, _ordered(getattr(value, name)))
    return changed


def _all_plain(values: Iterable[object]) -> bool:
    """Tell whether these are scalars that JSON certainly holds, short of NUL characters."""
    for value in values:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            continue
        if kind is int:
            if -_EXACT <= cast("int", value) <= _EXACT:
                continue
        elif kind is float and math.isfinite(cast("float", value)):
            continue
        return False
    return True


class _Found:
    """Walks through a value, refuses the first thing JSON cannot hold, and notes the unusual."""

    def __init__(self, *, blind: bool) -> None:
        self.blind = blind
        """Nobody is known who would read bytes as bytes."""
        self.sets = False
        self.exotic = False
        """Something that JSON can only hold as something else."""
        self.large = False
        """A whole number that JSON holds, and that not everyone who reads it does."""

    def inspect(self, value: object, path: str, depth: int) -> None:
        if depth > DEPTH_LIMIT:
            _refuse(value, path, f"is nested deeper than {DEPTH_LIMIT} levels", "flatten the data")
        if value is None:
            return
        if isinstance(value, str):
            self.exotic = self.exotic or isinstance(value, Enum)
            _inspect_text(value, path)
        elif isinstance(value, (int, float, Decimal)):
            self.exotic = self.exotic or isinstance(value, (Enum, Decimal))
            if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
                self.large = True
            _inspect_number(value, path)
        elif isinstance(value, dict):
            for key, item in cast("dict[object, object]", value).items():
                if not isinstance(key, str):
                    _refuse(key, path, "is a key that is not text", "use text as the keys of dicts")
                _inspect_text(key, f"a key of {path}")
                self.inspect(item, f"{path}.{key}", depth + 1)
        elif isinstance(value, (list, tuple, set, frozenset)):
            is_set = isinstance(value, (set, frozenset))
            self.sets = self.sets or is_set
            self.exotic = self.exotic or is_set or type(cast("object", value)) not in ARRAYS
            for index, item in enumerate(cast("Iterable[object]", value)):
                self.inspect(item, f"{path}[{index}]", depth + 1)
        else:
            self.exotic = True
            self._inspect_object(value, path, depth)

    def _inspect_object(self, value: object, path: str, depth: int) -> None:
        if fidelity.is_bytes(value):
            if self.blind:
                _refuse_bytes(value, path)
        elif isinstance(value, Enum):
            self.inspect(value.value, path, depth + 1)
        elif isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                self.inspect(getattr(value, name), f"{path}.{name}", depth + 1)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            for field in dataclasses.fields(value):
                self.inspect(getattr(value, field.name), f"{path}.{field.name}", depth + 1)
        else:
            written = _written_object(value, path)
            if hasattr(value, "model_dump"):
                self.inspect(plain(written), path, depth + 1)


def _refuse_bytes(value: object, path: str) -> NoReturn:
    _refuse(
        value,
        path,
        f"is {type(value).__name__}, which JSON does not have",
        "submit text, for example base64, or store the data elsewhere and submit where it is",
    )


def _written_object(value: object, path: str) -> bytes:
    if isinstance(value, msgspec.Raw):
        _refuse_object(value, path)
    try:
        return _encoder.encode(value)
    except TypeError:
        _refuse_object(value, path)
    except Exception as error:  # noqa: BLE001 - dumping a model runs foreign code
        _refuse_object(value, path, f" ({error})")


def _refuse_object(value: object, path: str, why: str = "") -> NoReturn:
    _refuse(
        value,
        path,
        f"is a {type(value).__name__}, which is not JSON data{why}",
        "submit text, numbers, booleans, None, lists and dicts, dataclasses, "
        "or an id by which the handler finds the object",
    )


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
    _Found(blind=False).inspect(value, path, 0)
    _refuse(value, path, "cannot be written as JSON", "submit plain JSON data")


def _find_exotic(value: object, path: str) -> NoReturn:
    """Name the part of a value that is not plain JSON data."""
    change = fidelity.first_change(value, plain(_encoder.encode(value)), path)
    if change is None:
        _refuse(value, path, "is not plain JSON data", "submit plain JSON data")
    refuse_change(change)


def refuse_change(change: fidelity.Change) -> NoReturn:
    """Raise InvalidPayload for a value that would come back as something else."""
    given, came = type(change.given).__name__, type(change.came).__name__
    _refuse(
        change.given,
        change.path,
        f"is a {given}, and whoever reads it would get a {came}: {_shown(change.came)}",
        f"annotate the parameter, so that it is read as {given}, or submit plain JSON data",
    )


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
            if text.startswith(theirs):
                return ours.format(text.removeprefix(theirs).strip()), None
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
