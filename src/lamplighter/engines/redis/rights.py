"""Whether the user may do all that scripts will do.

A script that is refused a command in its middle has done the half before it, so this is asked
before the first one runs.
"""

from __future__ import annotations

from lamplighter.engines.redis import acl, faults, scripts
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.connection import Connection
from lamplighter.engines.redis.keys import shard_prefix
from lamplighter.model.errors import StoreError, StoreForbidden


async def lacking(connection: Connection, address: Address) -> StoreError | None:
    """Say which right is missing, with the line that gives it."""
    text = scripts.script("rights").text
    prefix = shard_prefix(address.prefix, 0)
    wanted = acl.needed(address)
    said = await connection.command("EVAL", text, 1, prefix, "", *wanted)
    words = [word.decode() for word in said]
    unknown = [name for name, why in zip(words[::2], words[1::2], strict=True) if why == "unknown"]
    if unknown:
        return StoreForbidden(
            f"the server at {address.shown} does not know {', '.join(unknown)}",
            hint="use Redis 7.0, Valkey 7.2 or newer, and take these commands out of "
            "`rename-command` in the server's configuration",
            value=unknown[0],
        )
    refused = words[::2]
    if not refused:
        return None
    rights = " ".join(f"+{name.lower()}" for name in refused)
    return faults.forbidden(
        address, f"run {', '.join(refused)}", f"{acl.key_pattern(address)} {rights}"
    )
