"""The contract of the port as tests, shipped so that an engine can be written anywhere.

An engine is bound by two lines of `conftest.py` and two of a test module::

    pytest.register_assert_rewrite("lamplighter.port.conformance")
    from lamplighter.port.conformance.plugin import *


    @pytest.fixture
    def fresh_store(tmp_path): ...  # a function that gives the address of a new, empty store


    globals().update(every_test())  # in the test module

The suite is asynchronous: pytest-asyncio has to run in its auto mode.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = (
    "submit",
    "claim",
    "patience",
    "order",
    "renew",
    "settle",
    "versions",
    "record",
    "starts",
    "journal",
    "rescue",
    "cancel",
    "hold",
    "retry",
    "replay",
    "purge",
    "changes",
    "bulk",
    "prune",
    "membership",
    "activity",
    "settings",
    "tokens",
    "single_use",
    "queue_names",
    "audit",
    "wakeup",
    "inspect",
    "explain",
    "explain_running",
    "overtime",
    "fairness",
    "races",
    "opening",
    "checkup",
    "shards",
    "shard_reads",
    "put_schedules",
    "due_schedules",
    "fire",
    "fired_runs",
    "overlap",
    "trigger",
    "backfill",
    "hold_schedules",
    "schedule_tenants",
    "runs",
    "ends",
    "schedule_races",
    "schedule_machine",
    "state_machine",
)


def every_test() -> dict[str, Callable[..., object]]:
    """Gather the test functions of the whole suite under their names."""
    found: dict[str, Callable[..., object]] = {}
    for module in MODULES:
        for name, value in vars(import_module(f"{__name__}.{module}")).items():
            if not name.startswith("test_"):
                continue
            if name in found:
                # The later one would silently take the place of the earlier.
                raise AssertionError(f"two conformance tests are called {name}")
            found[name] = value
    return found
