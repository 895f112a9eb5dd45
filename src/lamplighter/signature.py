"""What a handler takes and gives, read once from its signature when it is registered."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast, get_type_hints

import msgspec

from lamplighter import payload
from lamplighter.context import Context
from lamplighter.model.errors import InvalidHandler
from lamplighter.model.names import shown
from lamplighter.providers import Provided

_KINDS = inspect.Parameter
_SIMPLE_DEFAULTS = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A handler's parameters without its Context, and its result."""

    text: str
    """As people write it, for error messages."""
    is_async: bool
    wants_context: bool
    positional: tuple[str, ...]
    """Parameters that may be given by position, in order."""
    needs: Mapping[str, object]
    """Parameters that a worker fills in, and the types of what it puts there."""
    arguments: type[msgspec.Struct]
    """One field per parameter; decoding into it is the check of a payload."""
    names: type[msgspec.Struct]
    """The same fields, whatever their values: decoding into it runs no code of the program."""
    schema: str
    """JSON Schema of the arguments, as text."""
    result: Any
    """Type of what the handler returns."""


def read(function: Callable[..., object]) -> Signature:
    """Read a handler's signature, or say why it cannot be a handler."""
    _check_kind(function)
    signature = inspect.signature(function)
    hints = _hints(function)
    parameters = list(signature.parameters.values())
    wants_context = bool(parameters) and _is_context(parameters[0], hints)
    if wants_context:
        parameters = parameters[1:]
    needs = _needs(function, parameters)
    parameters = [each for each in parameters if each.name not in needs]
    for parameter in parameters:
        _check_parameter(function, parameter, hints)
    struct = _struct(function, parameters, hints)
    returned = hints.get("return", Any)
    shown_parameters = [each.replace(annotation=_bare(each.annotation)) for each in parameters]
    text = inspect.Signature(shown_parameters, return_annotation=_bare(signature.return_annotation))
    return Signature(
        text=f"{function.__name__}{text}",
        is_async=_is_async(function),
        wants_context=wants_context,
        positional=tuple(p.name for p in parameters if p.kind is _KINDS.POSITIONAL_OR_KEYWORD),
        needs=needs,
        arguments=struct,
        names=_names(parameters),
        schema=_schema(function, struct),
        result=_result_type(returned),
    )


class _Bare(str):
    """An annotation that was kept as text, written without quotes: those of defaults stay."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: object) -> object:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _check_kind(function: Callable[..., object]) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        _refuse(
            function,
            f"{shown(function)} is a {type(function).__name__}, not a function",
            "decorate a plain `def` or `async def`",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse(
            function,
            f"`{function.__qualname__}` yields, so calling it does not run it",
            "return a value instead of yielding",
        )


def _is_async(function: Callable[..., object]) -> bool:
    # A wrapper made with functools.wraps may be a plain def that hands on the coroutine.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        inspect.unwrap(function)
    )


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        _refuse(
            function,
            f"an annotation of `{function.__qualname__}` names `{error.name}`, "
            "which cannot be found from its module",
            "define or import the class at the top of the module, outside of functions and of "
            "`if TYPE_CHECKING:`, because the annotation is read when the program runs",
        )
    except Exception as error:  # noqa: BLE001 - evaluating annotations runs foreign code
        _refuse(
            function,
            f"an annotation of `{function.__qualname__}` cannot be read: {error}",
            "write annotations that can be evaluated when the program runs",
        )


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """The first parameter is the Context if it says so, or is called ctx and says nothing."""
    if parameter.kind not in {_KINDS.POSITIONAL_OR_KEYWORD, _KINDS.POSITIONAL_ONLY}:
        return False
    hint = hints.get(parameter.name)
    return hint is Context or (hint is None and parameter.name == "ctx")


def _needs(
    function: Callable[..., object], parameters: list[inspect.Parameter]
) -> dict[str, object]:
    """Find the parameters that are no arguments of the job, because a worker fills them in."""
    needs: dict[str, object] = {}
    for parameter in parameters:
        if isinstance(parameter.default, Provided):
            needs[parameter.name] = parameter.default.kind
        elif needs and parameter.kind is _KINDS.POSITIONAL_OR_KEYWORD:
            _refuse(
                function,
                f"in `{function.__qualname__}` the argument `{parameter.name}` comes after "
                f"`{next(iter(needs))}`, which is provided, so its position would be unclear",
                "move what is provided to the end, best behind a `*`",
            )
    return needs


_REFUSED_KINDS = {
    _KINDS.VAR_POSITIONAL: ("takes any number of arguments as", "name each parameter"),
    _KINDS.VAR_KEYWORD: ("takes any names as", "name each parameter, or take one dict"),
    _KINDS.POSITIONAL_ONLY: (
        "takes by position only",
        "remove the `/`: arguments are stored by name",
    ),
}


def _check_parameter(
    function: Callable[..., object], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> None:
    if parameter.kind in _REFUSED_KINDS:
        what, remedy = _REFUSED_KINDS[parameter.kind]
        _refuse(function, f"`{function.__qualname__}` {what} `{parameter}`", remedy)
    if hints.get(parameter.name) is Context:
        _refuse(
            function,
            f"the Context of `{function.__qualname__}` is not its first parameter",
            f"move `{parameter.name}` to the front",
        )


def _struct(
    function: Callable[..., object],
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for parameter in parameters:
        kind = hints.get(parameter.name, Any)
        if parameter.default is _KINDS.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, _default(function, parameter)))
    try:
        struct = msgspec.defstruct(
            function.__name__, fields, kw_only=True, forbid_unknown_fields=True
        )
        msgspec.json.Decoder(struct, dec_hook=payload.from_json)
    except (TypeError, ValueError) as error:
        _refuse(
            function,
            f"`{function.__qualname__}` has a parameter whose type JSON cannot carry: {error}",
            _TYPES_REMEDY,
        )
    return struct


def _names(parameters: Iterable[inspect.Parameter]) -> type[msgspec.Struct]:
    fields: list[Any] = [
        (each.name, msgspec.Raw)
        if each.default is _KINDS.empty
        else (each.name, msgspec.Raw, msgspec.Raw())
        for each in parameters
    ]
    return msgspec.defstruct("names", fields, kw_only=True, forbid_unknown_fields=True)


def _default(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    value = parameter.default
    if type(value) in _SIMPLE_DEFAULTS:
        return value
    if not _is_mutable(value):
        return msgspec.field(default_factory=partial(_same, value))
    try:
        copy.deepcopy(value)
    except Exception as error:  # noqa: BLE001 - copying runs foreign code
        _refuse(
            function,
            f"the default of `{parameter.name}` in `{function.__qualname__}` can be changed by a "
            f"call, and cannot be copied for each: {error}",
            f"write `{parameter.name}=None`, and make the value in the function",
        )
    # Unlike Python itself: what one job leaves in it must not be seen by the next.
    return msgspec.field(default_factory=partial(copy.deepcopy, value))


def _is_mutable(value: object) -> bool:
    """Tell whether a default may change; what is none of these is shared, as in Python."""
    if isinstance(value, (list, dict, set, bytearray, tuple, deque, msgspec.Struct)):
        return True
    return dataclasses.is_dataclass(value) or payload.is_model(value)


def _same(value: object) -> object:
    return value


_TYPES_REMEDY = (
    "use text, numbers, booleans, None, lists, dicts, datetimes, UUIDs, Decimals, enums, "
    "dataclasses, TypedDicts, msgspec Structs or pydantic models; what a worker should fill in "
    "is marked, as in `db: Db = provided(Db)`"
)


def _schema(function: Callable[..., object], struct: type[msgspec.Struct]) -> str:
    def foreign(kind: type) -> dict[str, object]:
        if kind is object:
            return {"description": "any JSON value"}
        if payload.is_model(kind):
            return _model_schema(kind)
        _refuse(
            function,
            f"`{function.__qualname__}` has a parameter of type "
            f"{shown(getattr(kind, '__qualname__', kind))}, "
            "which JSON cannot carry",
            _TYPES_REMEDY,
        )

    try:
        schema = msgspec.json.schema(struct, schema_hook=foreign)
    except TypeError as error:
        if isinstance(error, InvalidHandler):
            raise
        _refuse(function, f"`{function.__qualname__}`: {error}", _TYPES_REMEDY)
    definitions = cast("dict[str, dict[str, object]]", schema["$defs"])
    root = definitions.pop(cast("str", schema["$ref"]).rpartition("/")[2])
    if definitions:
        root["$defs"] = definitions
    return json.dumps(root, sort_keys=True, ensure_ascii=False, default=str)


def with_secrets(schema: str, secrets: Collection[str]) -> str:
    """Mark secret arguments in a schema: they may be given, and are not to be shown."""
    if not secrets:
        return schema
    marked = cast("dict[str, Any]", json.loads(schema))
    for name, described in cast("dict[str, Any]", marked.get("properties", {})).items():
        if name in secrets:
            described["writeOnly"] = True
    return json.dumps(marked, sort_keys=True, ensure_ascii=False)


def _model_schema(kind: type) -> dict[str, object]:
    """Schema of a pydantic model; one with references inside cannot be moved, so it says less."""
    describe = getattr(kind, "model_json_schema", None)
    schema = cast("dict[str, object]", describe()) if describe is not None else {}
    if not schema or "$defs" in schema:
        return {"title": kind.__name__, "type": "object"}
    return schema


def _result_type(hint: Any) -> Any:
    """Return the type results are read as; one that JSON cannot carry is read as plain data."""
    try:
        msgspec.json.Decoder(hint, dec_hook=payload.from_json)
        msgspec.json.schema(hint, schema_hook=_only_models)
    except (TypeError, ValueError, NotImplementedError):
        return Any
    return hint


def _only_models(kind: type) -> dict[str, object]:
    if not payload.is_model(kind):
        raise TypeError(kind)
    return {"type": "object"}


def _refuse(function: object, cause: str, remedy: str) -> NoReturn:
    raise InvalidHandler(cause, hint=remedy, value=function) from None
