"""Runs a worker as a process of its own and tells its events, one JSON object per line."""

import asyncio
import json
import os
import sys

from lamplighter import coordinator
from lamplighter.config import Settings
from lamplighter.model.errors import LamplighterError
from lamplighter.model.stride import QueueStride
from lamplighter.worker import watch
from lamplighter.worker.supervisor import Supervisor, run_until_signalled


def tell(name, fields) -> None:
    if name != "store.call":
        print(json.dumps([name, fields], default=str), flush=True)


async def main() -> None:
    spec, given = sys.argv[1], json.loads(sys.argv[2])
    queues = given.pop("queues", None)
    settings = Settings(**given)
    watch.START_DEADLINE = float(os.environ.get("START_DEADLINE", watch.START_DEADLINE))
    supervisor = Supervisor(
        spec,
        settings,
        queues=None if queues is None else QueueStride(tuple(queues)),
        services=coordinator.services,
        on_event=tell,
    )
    await run_until_signalled(supervisor)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except LamplighterError as error:
        print(error, file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
