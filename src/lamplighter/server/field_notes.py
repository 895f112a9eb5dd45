"""The words below the fields of our shapes, for the OpenAPI document: they are written once."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

_OURS = "lamplighter."


def describe(components: Mapping[str, dict[str, Any]]) -> None:
    """Add to each schema what its struct says about its fields."""
    for kind in _structs(msgspec.Struct):
        found = components.get(kind.__name__, {}).get("properties", {})
        said = notes(kind)
        for field in msgspec.structs.fields(kind):
            if field.name in said and field.encode_name in found:
                found[field.encode_name].setdefault("description", said[field.name])


def notes(kind: type) -> dict[str, str]:
    """Return what stands below the fields of a class and of those it is made of."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _written(each.__module__).get(each.__qualname__, {})
    return found


def structs() -> Iterator[type[msgspec.Struct]]:
    """Yield all shapes of ours."""
    return _structs(msgspec.Struct)


def _structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith(_OURS):
            yield each
        yield from _structs(each)


@cache
def _written(module: str) -> Mapping[str, Mapping[str, str]]:
    """Read the notes of all classes of a module; without its source there are none."""
    if not module.startswith(_OURS):
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: dict(_notes(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _notes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(node.body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                yield name, " ".join(said.split())
            case _:
                pass
