"""put_queue, put_tenant, put_type: what operators set. Each costs nothing in the backlog."""

from __future__ import annotations

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.model import stride
from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings


async def put_queue(call: Call, name: str, settings: QueueSettings, by: str, reason: str) -> None:
    """Set a queue's longest wait or hold."""
    await call.rows(
        f"SELECT {call.function('put_queue')}(%s, %s::bigint, %s, %s)",
        (name, settings.max_wait_ms, settings.held, records.mark_to_text(by, reason)),
    )


async def put_tenant(call: Call, name: str, settings: TenantSettings, by: str, reason: str) -> None:
    """Set a tenant's weight or hold."""
    if settings.weight is not None:
        stride.check_weight(settings.weight)
    await call.rows(
        f"SELECT {call.function('put_tenant')}(%s, %s::integer, %s, %s)",
        (name, settings.weight, settings.held, records.mark_to_text(by, reason)),
    )


async def put_type(call: Call, name: str, settings: TypeSettings, by: str, reason: str) -> None:
    """Set a type's hold."""
    await call.rows(
        f"SELECT {call.function('put_type')}(%s, %s, %s)",
        (name, settings.held, records.mark_to_text(by, reason)),
    )
