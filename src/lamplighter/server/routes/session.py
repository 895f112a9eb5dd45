"""Sessions of browsers: log in with a token or a one-time code, and log out."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import msgspec

from lamplighter.model.errors import InvalidOption, WrongState
from lamplighter.model.names import shown
from lamplighter.port.access import About
from lamplighter.server import auditing
from lamplighter.server.auth import Principal
from lamplighter.server.errors import Forbidden, InvalidToken, SessionOver, SignedIn, TokenExpired
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes.me import Me, me_of
from lamplighter.server.sessions import Session, Sessions, check_page

Secret = Annotated[str, msgspec.Meta(min_length=1, max_length=8 * 1024)]

_EXAMPLE = {
    "name": "ada/3f9c2a71b0de",
    "scopes": ["jobs:read", "jobs:write"],
    "tenant": "acme",
    "session": {
        "csrf": "5f3c0e7b9a1d4c2e8f6a7b1c0d9e3f52",
        "ends_at": "2030-01-31T23:59:00Z",
        "idle_seconds": 1800.0,
    },
}


class Login(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What somebody logs in with: one of the two."""

    token: Secret | None = None
    """A key or a token of the service."""
    code: Secret | None = None
    """A code that `lamplighter token login` has printed; it is good for one login."""
    replace: bool = False
    """Whether the session of somebody else that this browser has is to be ended."""


@route(
    "POST",
    "/v1/session",
    scope=None,
    summary="Log in a browser: exchange a token or a one-time code for a session cookie.",
    body=Body(kind=Login, example={"code": f"llc_{7:012x}_{8:064x}"}),
    answers=[
        Answer(
            status=201,
            kind=Me,
            text="The session has begun.",
            example=_EXAMPLE,
            headers={"Set-Cookie": "The session; scripts cannot read it."},
        )
    ],
    errors=[InvalidToken, TokenExpired, SignedIn, WrongState, Forbidden],
)
async def begin(request: Request[Nothing, Login]) -> Reply:
    """Begin a session, with an id of its own."""
    service, headers, body = request.service, request.scope["headers"], request.body
    sessions = service.sessions
    if sessions is None or not service.door.asks:
        raise WrongState(
            "this service asks nobody to log in", hint="call it without a session", value=None
        )
    check_page(headers)
    if (body.token is None) == (body.code is None):
        raise InvalidOption("give one of `token` and `code`", hint="send the other as null")
    if body.token is not None:
        principal, session = await service.door.login(body.token, headers)
        before = await _other(request, sessions, principal)
    else:
        code = body.code or ""
        principal, prefix = await service.codes.read(code)
        before = await _other(request, sessions, principal)
        await service.codes.spend(code, prefix)
        session = sessions.begun(
            origin="code" if prefix else "own",
            name=principal.name,
            reference=prefix,
            scopes=sorted(principal.scopes),
            tenant=principal.tenant,
            headers=headers,
        )
    if before is not None:
        await sessions.end(before)
    known = dataclasses.replace(principal, session=session)
    await auditing.note(
        dataclasses.replace(request, principal=known), About(session.id, principal.tenant)
    )
    cookie = sessions.cookie(session, headers, request.scope.get("root_path", ""))
    return Reply(201, me_of(known, request.service), {"Set-Cookie": cookie})


async def _other(
    request: Request[Nothing, Login], sessions: Sessions, principal: Principal
) -> Session | None:
    """Return the session that the browser has; refuse to replace that of somebody else unasked."""
    try:
        before = sessions.read(request.scope["headers"])
        if before is None:
            return None
        await request.service.door.of_session(before)
    except (SessionOver, InvalidToken, TokenExpired):
        return None
    if before.name != principal.name and not request.body.replace:
        raise SignedIn(
            f"this browser is logged in as {shown(before.name)}, and this would log in "
            f"{shown(principal.name)}",
            hint="log out first, or send `replace` as true",
            value=before.name,
        )
    return before


@route(
    "DELETE",
    "/v1/session",
    scope=None,
    known=True,
    summary="Log out: the session ends, for all processes of the service.",
    answers=[
        Answer(
            status=200,
            kind=Me,
            text="Whoever has logged out.",
            example={key: value for key, value in _EXAMPLE.items() if key != "session"},
            headers={"Set-Cookie": "Takes the session away."},
        )
    ],
    errors=[WrongState],
)
async def end(request: Request[Nothing, None]) -> Reply:
    """End the session."""
    sessions, session = request.service.sessions, request.principal.session
    if sessions is None or session is None:
        raise WrongState(
            "the request has no session that could end",
            hint="tokens end with `lamplighter token revoke`",
            value=None,
        )
    await sessions.end(session)
    await auditing.note(request, About(session.id, request.principal.tenant))
    headers, path = request.scope["headers"], request.scope.get("root_path", "")
    gone = sessions.no_cookie(session, headers, path)
    whole = dataclasses.replace(request.principal, session=None)
    return Reply(200, me_of(whole, request.service), {"Set-Cookie": gone})
