"""What the engine promises, for each durability that an address can declare."""

from __future__ import annotations

from dataclasses import replace

from lamplighter.engines.redis.address import Durability
from lamplighter.port.capabilities import Capabilities

_FAILOVER = "after a failover, what had not reached the replica"

CAPABILITIES = Capabilities(
    name="redis",
    many_machines=True,
    push_wakeup=True,
    durable_submit=False,
    loss_window="what was written in the last second or two, when the server's machine fails, or "
    "when the server is killed while its disk is slow; "
    f"{_FAILOVER} (durability=everysec)",
    max_batch=100,
)
"""Of an address that declares nothing."""

DECLARED = {
    Durability.FSYNC: replace(
        CAPABILITIES,
        durable_submit=True,
        loss_window=f"none while the server's disk lives; {_FAILOVER} (durability=fsync)",
    ),
    Durability.EVERYSEC: CAPABILITIES,
    Durability.REPLICATED: replace(
        CAPABILITIES,
        loss_window="none after a failover to a replica that has confirmed; what was written in "
        "the last second or two, when the server or its machine fails and goes on from its own "
        "disk (durability=replicated)",
    ),
    Durability.NONE: replace(
        CAPABILITIES,
        loss_window="as the server's settings have it, whatever they are (durability=none)",
    ),
}
