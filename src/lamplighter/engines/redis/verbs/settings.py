"""put_queue, put_tenant, put_type: what operators set. Each costs nothing in the backlog.

Claims look at the settings in their own shard, so that each is written to all of them. Shard 0 is
the last: its version is the one that beats tell, and it moves when the setting acts everywhere.
"""

from __future__ import annotations

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.model import stride
from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings


async def put_queue(call: Call, name: str, settings: QueueSettings, by: str, reason: str) -> None:
    """Set a queue's longest wait or hold."""
    given = (_field(settings.max_wait_ms), _field(settings.held), records.mark_to_text(by, reason))
    await _put(call, "queue", name, given)


async def put_tenant(call: Call, name: str, settings: TenantSettings, by: str, reason: str) -> None:
    """Set a tenant's weight or hold."""
    if settings.weight is not None:
        stride.check_weight(settings.weight)
    given = (_field(settings.weight), _field(settings.held), records.mark_to_text(by, reason))
    await _put(call, "tenant", name, given)


async def put_type(call: Call, name: str, settings: TypeSettings, by: str, reason: str) -> None:
    """Set a type's hold."""
    given = (_field(None), _field(settings.held), records.mark_to_text(by, reason))
    await _put(call, "type", name, given)


async def _put(call: Call, kind: str, name: str, given: tuple[Argument, ...]) -> None:
    for shard in reversed(range(call.shards)):
        await call.run("put_settings", (kind, name, *given), shard=shard)


def _field(value: int | None) -> Argument:
    """Write a field; one that is not given is empty and stays as it is."""
    return "" if value is None else int(value)
