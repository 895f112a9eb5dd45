"""A process that claims and settles until nothing is left, and tells what it got.

Usage: python -m lamplighter.port.conformance.contender URL --worker NAME [--limit N]

It prints ``{"ready": true}``, waits for a line on its input, so that several can start together,
and then prints one JSON line per claim: ``{"claimed": [[id, lease, handout], …]}``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from lamplighter import runtime
from lamplighter.model.lifecycle import settle_all
from lamplighter.model.outcome import Succeeded
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest

DEFAULT_CONNECTOR = "lamplighter.connect:connect"


class Connect(Protocol):
    """What makes an engine, not yet opened, of an address."""

    def __call__(self, url: str, *, clock_ms: Callable[[], int] | None = None) -> Engine:
        """Make it."""
        ...


def load(connector: str) -> Connect:
    """Find a connector by its name; the port itself knows no engine."""
    module, _, function = connector.partition(":")
    return cast("Connect", getattr(import_module(module), function))


async def contend(engine: Engine, options: argparse.Namespace) -> None:
    """Claim and settle until the queue is empty."""
    while True:
        answer = await engine.jobs.claim(
            ClaimRequest(
                nonce=runtime.nonce(),
                worker=options.worker,
                queues=((options.queue, options.limit),),
                types=(options.type,),
                limit=options.limit,
                lease_ms=60_000,
            ),
        )
        if not answer.claims:
            return
        _tell({"claimed": [[c.job.id, c.fence.lease, c.handout] for c in answer.claims]})
        settled = await engine.jobs.settle(settle_all(answer.claims, Succeeded()))
        _tell({"settled": [[s.id, s.answer.value] for s in settled]})


async def run(options: argparse.Namespace) -> None:
    """Open the store, wait for the starting line, contend."""
    engine = load(options.connector)(options.url)
    await engine.open()
    try:
        _tell({"ready": True})
        await asyncio.to_thread(sys.stdin.readline)
        await contend(engine, options)
    finally:
        await engine.close()


def _tell(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--worker", required=True)
    parser.add_argument("--queue", default="default")
    parser.add_argument("--type", default="work")
    parser.add_argument("--limit", type=int, default=7)
    parser.add_argument("--connector", default=DEFAULT_CONNECTOR)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
