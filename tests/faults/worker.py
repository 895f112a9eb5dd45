"""One worker as a process of its own: `python -m tests.faults.worker PROGRAM SETTING=VALUE …`.

It is what `lamplighter worker` starts, with a lease shorter than anybody should use, and it
writes the events that the checker needs into the history of the run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamplighter import config, coordinator
from lamplighter.observability import events
from lamplighter.worker.supervisor import Supervisor, run_until_signalled
from tests.faults.history import Journal
from tests.faults.rules import FOLDER

TOLD = frozenset(
    {
        events.LEASE_LOST,
        events.CHILD_STARTED,
        events.CHILD_RETIRED,
        events.CHILD_DIED,
        events.TYPE_ISOLATED,
        events.LOOP_SILENT,
        events.SERVICE_ERROR,
        events.JOB_RESCUED,
        events.CLOCK_JUMPED,
        events.WORKER_STARTED,
        events.WORKER_STOPPED,
    }
)


async def main(program: str, given: Mapping[str, float]) -> None:
    journal = Journal(Path(os.environ[FOLDER]) / "history.jsonl")

    def tell(name: str, fields: Mapping[str, Any]) -> None:
        if name in TOLD:
            plain = {key: _plain(value) for key, value in fields.items()}
            journal.write("event", name=name, supervisor=os.getpid(), fields=plain)

    settings = config.load(**{"grace": 20.0, "poll": 0.5, **given})
    spec = f"tests.faults.{program}:app"
    supervisor = Supervisor(spec, settings, services=coordinator.services)
    events.listen(tell)
    await run_until_signalled(supervisor)


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _settings(words: list[str]) -> dict[str, float]:
    """Read ``name=value``; a number without a fraction is a whole one."""
    pairs = (word.partition("=") for word in words)
    return {name: float(text) if "." in text else int(text) for name, _, text in pairs}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], _settings(sys.argv[2:])))
