"""A coordinator in a process of its own; tells what it has fired, and its memory in KiB.

`python -m benchmarks.parts.schedules_node SECONDS`, with the store's address in LAMPLIGHTER_URL.
"""

from __future__ import annotations

import asyncio
import re
import resource
import sys
from pathlib import Path

from lamplighter import config, coordinator
from lamplighter.connect import connect


async def _main(seconds: float) -> None:
    settings = config.load()
    engine = connect(settings.url)
    await engine.open()
    services = coordinator.services(engine, settings)
    try:
        for service in services:
            service.start()
        await asyncio.sleep(seconds)
        for service in services:
            await service.stop()
    finally:
        await engine.close()
    fired = sum(one.counts.fired for one in services if isinstance(one, coordinator.Firer))
    print(fired, _most_kib())


def _most_kib() -> int:
    """Give the most that this process had in memory."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        # Not Linux, where this would include what the process that started us had.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most
    found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1])))
