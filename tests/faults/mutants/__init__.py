"""Known bugs, kept as patches. A suite that does not notice them proves nothing.

Each patch is applied to a copy of the sources, and the stories that should notice it are played
on that copy. A patch that does not apply any more is an error: somebody has to look at it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.faults.driver import ROOT, Driver
from tests.faults.mutants.patching import apply
from tests.faults.places import SQLITE, Ground
from tests.faults.scenarios import poison, schedules, stopped
from tests.faults.scenarios.stage import Verdict
from tests.faults.scenes import FILES, REDIS

SOURCE = ROOT / "src"
PATCHES = Path(__file__).parent
PROBE_TIME = 60.0
SCENARIO_TIME = 300.0
LEASE = 2.0
TABLE = frozenset({"occurrence", "table"})
ONCE = frozenset({"at most once"})
ENGINES = (("sqlite", ""), ("postgres", "postgres-"), ("redis", "redis-"))
"""Each with what the names of bugs in it begin with, where the same is planted in all."""


class Scenario(Protocol):
    """Plays with processes that import the sources of the ground."""

    def __call__(self, folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the story that shows it, and what the checker must say."""

    name: str
    invariants: frozenset[str]
    """Any of these counts as caught."""
    probe: str | None = None
    """Story on the engine that must show it."""
    scenario: Scenario | None = None
    """Scenario with real processes that must show it; takes longer."""
    engine: str = "sqlite"
    """The engine it is planted in, or on which it is played if it is in none."""
    planted: str | None = None
    """Name of its patch, where that is not its own: one that stands above the engines."""

    @property
    def patch(self) -> Path:
        return PATCHES / f"{self.planted or self.name}.patch"


MUTANTS = (
    Mutant("settle-without-fence", frozenset({"I3"}), "stale_settle", stopped.run_worker),
    Mutant("fence-by-number-only", frozenset({"I3"}), "restored_store"),
    Mutant("rescue-without-recheck", frozenset({"I2"}), "renewed_lease"),
    Mutant("settle-ignores-cancel", frozenset({"I10"}), "cancel_of_running"),
    Mutant("started-claims-forgotten", frozenset({"at most once"}), None, stopped.run_alone),
    Mutant("child-death-charges", frozenset({"neighbours"}), "dead_child", poison.run_harm),
    Mutant("crashes-not-counted", frozenset({"I1", "I6"}), "killer"),
    Mutant("slot-leaves-grandchildren", frozenset({"orphans"}), None, poison.run_harm),
    Mutant("retire-without-replacement", frozenset({"capacity"}), None, poison.run_capacity),
    Mutant("hard-end-suspects-neighbours", frozenset({"neighbours"}), None, poison.run_capacity),
    Mutant(
        "postgres-settle-without-fence",
        frozenset({"I3"}),
        "stale_settle",
        stopped.run_worker,
        engine="postgres",
    ),
    Mutant("postgres-fence-by-number-only", frozenset({"I3"}), "restored_store", engine="postgres"),
    Mutant("postgres-claim-not-repeatable", frozenset({"I1"}), "repeated_claim", engine="postgres"),
    Mutant(
        "postgres-submit-not-repeatable",
        frozenset({"I1", "I2", "I3"}),
        "repeated_submit",
        engine="postgres",
    ),
    Mutant(
        "redis-settle-without-fence",
        frozenset({"I3"}),
        "stale_settle",
        stopped.run_worker,
        engine="redis",
    ),
    Mutant("redis-fence-by-number-only", frozenset({"I3"}), "restored_store", engine="redis"),
    Mutant("redis-claim-not-repeatable", frozenset({"I1"}), "repeated_claim", engine="redis"),
    Mutant(
        "redis-submit-not-repeatable",
        frozenset({"I1", "I2", "I3"}),
        "repeated_submit",
        engine="redis",
    ),
    Mutant("redis-claim-leaves-turn", frozenset({"I2", "I9"}), "repeated_claim", engine="redis"),
    Mutant("redis-settle-without-recheck", frozenset({"I2"}), "renewed_lease", engine="redis"),
    Mutant("redis-settle-ignores-cancel", frozenset({"I10"}), "cancel_of_running", engine="redis"),
    Mutant("redis-settle-leaves-lease", frozenset({"store"}), "stale_settle", engine="redis"),
    Mutant("redis-rescue-forgets", frozenset({"I1"}), "dead_rescuer", engine="redis"),
    Mutant("redis-rescue-trusts-clock", frozenset({"I1"}), "clock_went_back", engine="redis"),
    Mutant("handler-before-mark", ONCE, None, stopped.run_killers),
    Mutant("misfit-charged", frozenset({"neighbours"}), "misfit"),
    Mutant("redis-script-without-guard", frozenset({"I1"}), "emptied_server", engine="redis"),
    *(
        Mutant(f"{prefix}{name}", caught, probe, engine=engine)
        for engine, prefix in ENGINES
        for name, caught, probe in (
            ("rescue-ignores-mark", ONCE, "marked_start"),
            ("settle-ignores-mark", ONCE, "late_mark"),
            ("retry-new-generation", frozenset({"I9"}), "retried_dead"),
        )
    ),
    # PostgreSQL compares once more where it writes.
    Mutant("cancel-without-compare", frozenset({"I9"}), "late_cancel"),
    Mutant(
        "redis-cancel-without-compare",
        frozenset({"I9"}),
        "late_cancel",
        engine="redis",
        planted="cancel-without-compare",
    ),
    *(
        Mutant(f"{prefix}{name}", TABLE, "dead_firer", schedules.run_hunt, engine, planted=name)
        for engine, prefix in ENGINES
        for name in ("fire-in-two-writes", "fire-advances-first")
    ),
    *(
        Mutant(
            f"{prefix}fire-without-compare", TABLE, "late_firer", schedules.run_hunt, engine=engine
        )
        for engine, prefix in ENGINES
    ),
)


def hunt(
    folder: Path, *, engine: str = "sqlite", processes: bool, say: Callable[[str], object]
) -> list[str]:
    """Plant every bug of an engine; gives the names of those that nobody noticed.

    Without ``processes`` only the quick stories are played; every patch has to apply all the same.
    """
    with _server(folder, engine) as server:
        healthy = _probe(folder / "healthy", server, SOURCE, [])
        survivors = [f"no bug at all, yet {name} fails" for name, found in healthy.items() if found]
        for mutant in MUTANTS:
            place = folder / mutant.name
            source = plant(mutant, place)
            if mutant.engine != engine:
                continue
            seen: dict[str, set[str]] = {}
            if mutant.probe is not None:
                found = _probe(place / "probe", server, source, [mutant.probe])
                seen[mutant.probe] = set(found[mutant.probe])
            if processes and mutant.scenario is not None:
                story, found = _scenario(mutant, place, source)
                seen[story] = set(found)
            for story, invariants in seen.items():
                caught = ", ".join(sorted(invariants & mutant.invariants))
                say(f"{mutant.name:30} {story:18} {caught or 'SURVIVED'}")
                if not caught:
                    survivors.append(f"{mutant.name} in {story}")
    return survivors


@contextmanager
def _server(folder: Path, engine: str) -> Iterator[str]:
    """Give the address on which stories are played."""
    if engine == "sqlite":
        yield FILES
        return
    if engine == "redis":
        yield REDIS
        return
    from tests.servers import postgres

    with postgres.start(postgres.newest_server(), folder) as server:
        yield server.url()


def plant(mutant: Mutant, folder: Path) -> Path:
    """Give a copy of the sources with the bug in it."""
    source = folder / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    apply(mutant.patch.read_text(encoding="utf-8"), source)
    return source


def _probe(folder: Path, server: str, source: Path, names: list[str]) -> dict[str, list[str]]:
    """Play probes in a process that imports this copy of the sources."""
    return _run(folder, source, "tests.faults.probes", folder, server, *names, timeout=PROBE_TIME)


def _scenario(mutant: Mutant, folder: Path, source: Path) -> tuple[str, list[str]]:
    """Play a scenario in such a process; gives its name and what was violated."""
    names = (mutant.name, folder / "processes", source)
    module = "tests.faults.mutants.play"
    return _run(folder / "driver", source, module, *names, timeout=SCENARIO_TIME)


def _run(folder: Path, source: Path, module: str, *arguments: object, timeout: float) -> Any:
    folder.mkdir(parents=True)
    driver = Driver(folder, "", source=source)
    try:
        ended = driver.run(module, *map(str, arguments), timeout=timeout)
    finally:
        driver.end()
    if ended.returncode != 0:
        raise RuntimeError(f"{module} could not be played:\n{ended.stderr}")
    return json.loads(ended.stdout)
