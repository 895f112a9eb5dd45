"""Find the program's job types by `module:attribute`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Protocol, runtime_checkable

from lamplighter.config import Settings
from lamplighter.model.errors import InvalidApp
from lamplighter.model.names import shown
from lamplighter.port.store import Engine
from lamplighter.registry import Registry

_FRAMES = 20
_FORM = "give it as `module:attribute`, for example `shop.jobs:app`"


def load(spec: str) -> object:
    """Import what ``spec`` names, with the working folder on the path."""
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise InvalidApp(f"{shown(spec)} does not name an app", hint=_FORM, value=spec)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = importlib.import_module(module_name)
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, module_name):
            raise InvalidApp(
                f"there is no module {shown(module_name)} (looked for {shown(spec)})",
                hint=f"run the command in the folder that contains it, or set PYTHONPATH; {_FORM}",
                value=spec,
            ) from error
        raise InvalidApp(
            f"importing {shown(module_name)} failed:\n\n{_trace(error)}",
            hint=f"make `python -c 'import {module_name}'` work",
            value=spec,
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InvalidApp(
                f"the module {shown(module_name)} has no {shown(attribute)}",
                hint=f"check the name behind the colon; {_FORM}",
                value=spec,
            )
        found = getattr(found, name)
    return found


def load_registry(spec: str) -> Registry:
    """Import what ``spec`` names and give its job types."""
    return registry_of(load(spec), spec)


@runtime_checkable
class Borrower(Protocol):
    """A program that submits jobs itself, and can use a store that is open already."""

    def configure(self, settings: Settings) -> None:
        """Use these settings."""
        ...

    def adopt(self, engine: Engine) -> None:
        """Use this opened store in the running loop."""
        ...


def registry_of(found: object, spec: str) -> Registry:
    """Return the job types of a loaded app, or say why it is none."""
    registry = getattr(found, "registry", None)
    if not isinstance(registry, Registry):
        raise InvalidApp(
            f"{shown(spec)} is a {type(found).__name__}, not an App",
            hint="name the object made by `App(…)`, on which `@app.job` is used",
            value=spec,
        )
    if not len(registry):
        raise InvalidApp(
            f"{shown(spec)} has no job types, so a worker would have nothing to run",
            hint="decorate a function with `@app.job` in a module that is imported with the app",
            value=spec,
        )
    return registry


def _is_part(missing: str | None, wanted: str) -> bool:
    return missing is not None and (wanted == missing or wanted.startswith(missing + "."))


def _trace(error: BaseException) -> str:
    """Show the user's part of a failed import."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")
        or trace.tb_frame.f_code.co_filename in {__file__, importlib.__file__}
    ):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace, limit=-_FRAMES)).rstrip()
