"""The program named by MODULE:APP, with the settings the command line gives it."""

from __future__ import annotations

import dataclasses
import os

from lamplighter import config
from lamplighter.app import App
from lamplighter.cli import output, store
from lamplighter.config import Settings
from lamplighter.coordinator import Declarer
from lamplighter.fleet import Fleet
from lamplighter.model.errors import InvalidApp
from lamplighter.model.names import shown
from lamplighter.port.schedules import NewSchedule
from lamplighter.port.store import Engine
from lamplighter.schedules import looked_at_next
from lamplighter.worker.load import load, load_registry


def load_app(spec: str) -> App:
    """Import the app that ``spec`` names."""
    found = load(spec)
    if isinstance(found, App):
        return found
    raise InvalidApp(
        f"{shown(spec)} is of type {type(found).__name__}, not an App",
        hint="name the object made by `App(…)`, on which `@app.job` is used",
        value=spec,
    )


def load_worker_app(spec: str, **given: object) -> App:
    """Import an app that has something to run, and give it the settings that were typed.

    They also go into the environment: the worker's children import the program anew, and what
    its handlers submit belongs into the same store, at the same speed.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    checked = config.load(None, **chosen)
    for name in chosen:
        os.environ[config.PREFIX + name.upper()] = str(getattr(checked, name))
    app = load_app(spec)
    load_registry(spec)
    if "url" not in chosen:
        _tell_of_two_stores(app.settings.url)
    app.configure(_over(app.settings, checked, chosen))
    return app


def declarer(engine: Engine, app: App, fleet: Fleet) -> Declarer:
    """Return the service that puts the schedules which a program declares."""

    def declared() -> list[NewSchedule]:
        return list(map(looked_at_next, app.schedules.declared.values()))

    return Declarer(engine, declared, by=store.operator(None), fleet=fleet)


def _tell_of_two_stores(used: str) -> None:
    """Tell whoever named one store by the environment that the program uses another.

    Otherwise `lamplighter jobs` looks into the one, while the worker waits at the other.
    """
    variable = config.PREFIX + "URL"
    given = [name for name in (f"{variable}_FILE", variable) if name in os.environ]
    if given and used != config.load().url:
        output.note(
            f"the program names its own store in `App(…)`: {given[0]} is not used\n\n"
            "hint: write `App()` in the program, or give the worker the address with --url"
        )


def _over(settings: Settings, checked: Settings, chosen: dict[str, object]) -> Settings:
    typed = {name: getattr(checked, name) for name in chosen}
    return dataclasses.replace(settings, **typed)
