"""A worker as `lamplighter worker` runs it, in a process of its own; it ends with its driver."""

from __future__ import annotations

import asyncio
import os
import sys

from benchmarks.jobs import METRICS_PORT
from lamplighter import config, coordinator
from lamplighter.observability import endpoint
from lamplighter.worker.supervisor import Supervisor, run_until_signalled


async def _main() -> None:
    supervisor = Supervisor("benchmarks.app:app", config.load(), services=coordinator.services)
    loop = asyncio.get_running_loop()

    def driver_is_gone() -> None:
        loop.remove_reader(sys.stdin)
        supervisor.drain()

    # The driver never writes: the line becomes readable when it is closed.
    loop.add_reader(sys.stdin, driver_is_gone)
    if port := os.environ.get(METRICS_PORT):
        listener = endpoint.bound("127.0.0.1", int(port))
        await endpoint.Endpoint(listener, supervisor.metrics).start()
    await run_until_signalled(supervisor)


if __name__ == "__main__":
    asyncio.run(_main())
