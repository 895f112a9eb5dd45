"""Plays the scenario of one planted bug: `python -m tests.faults.mutants.play NAME FOLDER SOURCE`.

In a process of its own, because a store may run the code of whoever has opened it last: all who
open it have to import the same sources.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.faults.mutants import LEASE, MUTANTS
from tests.faults.places import Ground


def main(name: str, folder: Path, source: Path) -> None:
    """Print the name of the scenario and the invariants that were violated."""
    (mutant,) = (one for one in MUTANTS if one.name == name)
    if mutant.scenario is None:
        raise ValueError(f"{name} has no scenario")
    verdict = mutant.scenario(folder, LEASE, ground=Ground(mutant.engine, source))
    print(json.dumps([verdict.name, [one.invariant for one in verdict.violations]]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
