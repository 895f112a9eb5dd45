"""Hashes that are kept by name, read some names at a time: settings, hand-outs, what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lamplighter.engines.redis.call import Call


async def pages(call: Call, which: str, shard: int) -> AsyncIterator[dict[str, bytes]]:
    """Give all names with what is kept of each; one may come twice."""
    cursor = b"0"
    while True:
        cursor, *rest = await call.run("inspect_names", (which, cursor), shard=shard)
        yield {name.decode(): text for name, text in zip(rest[::2], rest[1::2], strict=True)}
        if cursor == b"0":
            return


async def every(call: Call, which: str, shard: int) -> dict[str, bytes]:
    """Give all at once."""
    found: dict[str, bytes] = {}
    async for page in pages(call, which, shard):
        found.update(page)
    return found
