"""Known bugs, kept as patches. A suite that does not notice them proves nothing.

Each patch is applied to a copy of the sources, and the stories that should notice it are played
on that copy. A patch that does not apply any more is an error: somebody has to look at it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.driver import ROOT, Driver
from tests.faults.mutants.patching import apply
from tests.faults.scenarios import stopped

SOURCE = ROOT / "src"
PATCHES = Path(__file__).parent
PROBE_TIME = 60.0
LEASE = 2.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the story that shows it, and what the checker must say."""

    name: str
    probe: str
    invariants: frozenset[str]
    """Any of these counts as caught."""
    in_processes: bool = False
    """Also play the scenario in which a stopped worker writes late."""

    @property
    def patch(self) -> Path:
        return PATCHES / f"{self.name}.patch"


MUTANTS = (
    Mutant("settle-without-fence", "stale_settle", frozenset({"I3"}), in_processes=True),
    Mutant("fence-by-number-only", "restored_store", frozenset({"I3"})),
    Mutant("rescue-without-recheck", "renewed_lease", frozenset({"I2"})),
    Mutant("cancel-without-compare", "late_cancel", frozenset({"I9"})),
    Mutant("settle-ignores-cancel", "cancel_of_running", frozenset({"I10"})),
)


def hunt(folder: Path, *, processes: bool, say: Callable[[str], object]) -> list[str]:
    """Plant every bug; gives the names of those that nobody noticed."""
    healthy = _probe(folder / "healthy", SOURCE, [])
    survivors = [f"no bug at all, yet {probe}" for probe, found in healthy.items() if found]
    for mutant in MUTANTS:
        source = plant(mutant, folder / mutant.name)
        found = set(_probe(folder / mutant.name / "run", source, [mutant.probe])[mutant.probe])
        caught = found & mutant.invariants
        say(f"{mutant.name:24} {mutant.probe:18} {', '.join(sorted(caught)) or 'SURVIVED'}")
        if not caught:
            survivors.append(mutant.name)
        if processes and mutant.in_processes:
            place = folder / mutant.name / "processes"
            verdict = stopped.run_worker(place, LEASE, source=source)
            seen = {one.invariant for one in verdict.violations} & mutant.invariants
            words = ", ".join(sorted(seen)) or "SURVIVED"
            say(f"{mutant.name:24} {'stopped worker':18} {words}")
            if not seen:
                survivors.append(f"{mutant.name} in processes")
    return survivors


def plant(mutant: Mutant, folder: Path) -> Path:
    """Give a copy of the sources with the bug in it."""
    source = folder / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    apply(mutant.patch.read_text(encoding="utf-8"), source)
    return source


def _probe(folder: Path, source: Path, names: list[str]) -> dict[str, list[str]]:
    """Play probes in a process that imports this copy of the sources."""
    folder.mkdir(parents=True)
    driver = Driver(folder, source=source)
    try:
        ended = driver.run("tests.faults.probes", str(folder), *names, timeout=PROBE_TIME)
    finally:
        driver.end()
    if ended.returncode != 0:
        raise RuntimeError(f"a probe could not be played:\n{ended.stderr}")
    return json.loads(ended.stdout)
