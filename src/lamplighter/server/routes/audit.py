"""The audit log: who has changed what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from lamplighter.model.errors import InvalidName
from lamplighter.model.names import check_name
from lamplighter.model.timetable import moment
from lamplighter.port.access import AuditRecord
from lamplighter.server import marks
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.errors import InvalidCursor, InvalidQuery
from lamplighter.server.route import Answer, Reply, Request, route
from lamplighter.server.routes import examples

DEFAULT_PAGE = 50


class AuditQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which entries."""

    tenant: str | None = None
    """Only those about what belongs to this tenant."""
    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_PAGE
    """Entries on a page; more than the setting `http_page` are cut to that."""
    cursor: str | None = None
    """`next` of the page before."""


class Entry(msgspec.Struct, kw_only=True, frozen=True):
    """Somebody has changed something."""

    id: str
    at: datetime
    by: str
    action: str
    """What was done, such as `job.cancel`."""
    object: str
    """To what: an id, a name, or what was chosen."""
    tenant: str | None
    """Whose it is; null: nobody's, or everybody's."""
    reason: str
    answer: str
    """What became of it."""


class Audit(msgspec.Struct, kw_only=True, frozen=True):
    """Some entries, newest first."""

    entries: list[Entry]
    next: str | None
    """Cursor of the next page; null: that was all."""


@route(
    "GET",
    "/v1/audit",
    scope=Scope.ADMIN,
    summary="List who has changed what, newest first.",
    query=AuditQuery,
    answers=[
        Answer(
            status=200,
            kind=Audit,
            text="A page of entries.",
            example={
                "entries": [
                    {
                        "id": "5d41402abc4b2a76b9719d911017c592",
                        "at": "2030-01-31T12:00:00Z",
                        "by": "deploy/3f9c2a71b0de",
                        "action": "job.cancel",
                        "object": examples.ID,
                        "tenant": "acme",
                        "reason": "wrong order",
                        "answer": "done",
                    }
                ],
                "next": None,
            },
        )
    ],
    errors=[InvalidQuery, InvalidCursor],
)
async def list_audit(request: Request[AuditQuery, None]) -> Reply:
    """Read one page."""
    service, query = request.service, request.query
    tenant = _tenant(query, request.principal)
    if tenant is not None and not request.principal.sees(tenant):
        return Reply(200, Audit(entries=[], next=None))
    page, following = await service.page(
        query,
        f"audit {tenant!r}",
        lambda engine, limit, place: engine.access.audit(tenant=tenant, limit=limit, cursor=place),
    )
    return Reply(
        200,
        Audit(entries=[_entry(each, request.principal) for each in page.records], next=following),
    )


def _tenant(query: AuditQuery, principal: Principal) -> str | None:
    """Return the tenant that is asked about; whoever has one of their own asks about that."""
    if query.tenant is None:
        return principal.tenant
    try:
        return check_name("tenant", query.tenant)
    except InvalidName as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None


def _entry(record: AuditRecord, principal: Principal) -> Entry:
    entry = record.entry
    return Entry(
        id=entry.id,
        at=moment(record.at_ms),
        by=marks.called(entry.by, principal),
        action=entry.action,
        object=entry.object,
        tenant=entry.tenant,
        reason=entry.reason,
        answer=entry.answer,
    )
