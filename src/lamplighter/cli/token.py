"""`lamplighter token`: who may call the HTTP service."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

from lamplighter import runtime
from lamplighter.cli import noting, output, reading, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.model.access import (
    PREFIX_BITS,
    SECRET_BITS,
    Scope,
    code_of,
    digest_of,
    prefix_of,
    token_of,
)
from lamplighter.model.errors import InvalidInput, InvalidTime, UnknownToken
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import check_name, shown
from lamplighter.port.access import About, NewToken, TokenRecord
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer

PAGE = 500
DEFAULT_LIFETIME = "90d"
CODE_LIFETIME_MS = 5 * 60_000


@click.group(cls=ListingGroup, short_help="Manage the tokens of the HTTP service; log in.")
def token() -> None:
    """List, create and revoke the tokens of the HTTP service, and log a browser in."""


@token.command()
@click.option("--name", required=True, help="Who it is for; stands in the audit log.")
@click.option(
    "--scope",
    "scopes",
    required=True,
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it lets them do; several times for more.",
)
@click.option("--tenant", help="The only tenant it is good for.  [default: all]")
@click.option(
    "--expires",
    metavar="DURATION",
    default=DEFAULT_LIFETIME,
    show_default=True,
    help="How long it is good for; `never` for a token without an end.",
)
@click.option("--by", metavar="NAME", help="Who asks for it.  [default: you@this-host]")
@store.store_options
def create(
    *,
    name: str,
    scopes: tuple[str, ...],
    tenant: str | None,
    expires: str,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Make a token and print it. It is shown this once: the store has only its digest."""
    prefix, text = token_of(runtime.random_bits(PREFIX_BITS), runtime.random_bits(SECRET_BITS))
    new = NewToken(
        prefix=prefix,
        digest=digest_of(text),
        name=check_name("token name", name),
        scopes=tuple(dict.fromkeys(scopes)),
        tenant=None if tenant is None else check_name("tenant", tenant),
        lifetime_ms=_lifetime_ms(expires),
    )
    record = store.run(_create(url, new, store.operator(by), "token.create"))
    if as_json:
        output.print_json({"token": text, **_shape(record)})
    else:
        click.echo(text)
        output.note(f"{prefix}: {_state(record)}")


@token.command()
@click.option("--name", help="Who logs in; stands in the audit log.  [default: you@this-host]")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=(Scope.OPERATOR.value,),
    show_default=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What the session lets them do; several times for more.",
)
@click.option("--tenant", help="The only tenant the session is good for.  [default: all]")
@click.option(
    "--address",
    metavar="URL",
    default="http://127.0.0.1:8080",
    show_default=True,
    help="Where the service is, as the browser reaches it.",
)
@click.option("--by", metavar="NAME", help="Who asks for it.  [default: you@this-host]")
@store.store_options
def login(
    *,
    name: str | None,
    scopes: tuple[str, ...],
    tenant: str | None,
    address: str,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Print a link that logs a browser in to the console, once and within five minutes.

    Nothing in it is of use to anybody afterwards. The session ends when nobody uses it, when it is
    logged out, or with `lamplighter token revoke`.
    """
    place = _address(address)
    who = store.operator(by)
    prefix, code = code_of(runtime.random_bits(PREFIX_BITS), runtime.random_bits(SECRET_BITS))
    new = NewToken(
        prefix=prefix,
        digest=digest_of(code),
        name=check_name("name", name or who),
        scopes=tuple(dict.fromkeys(scopes)),
        tenant=None if tenant is None else check_name("tenant", tenant),
        lifetime_ms=CODE_LIFETIME_MS,
    )
    store.run(_create(url, new, who, "token.login"))
    link = f"{place}/#code={code}"
    if as_json:
        output.print_json({"url": link, "code": code, "prefix": prefix, "scopes": list(scopes)})
    else:
        click.echo(link)


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            f"--address {shown(text)} is no address of a service",
            hint="give it as the browser has it, as in https://jobs.example.com",
            value=text,
        )
    return text.rstrip("/")


@token.command("list")
@store.store_options
def list_tokens(url: str | None, *, as_json: bool) -> None:
    """List tokens, newest first, also those that are good no more."""
    found = sorted(store.run(_tokens(url)), key=lambda one: one.created_at_ms, reverse=True)
    if as_json:
        output.print_json({"tokens": [_shape(record) for record in found]})
        return
    output.print_table(
        ["prefix", "~name", "~scopes", "?~tenant", "state", "created", "?~by"],
        (
            [
                record.prefix,
                record.name,
                " ".join(record.scopes),
                record.tenant or "",
                (_state(record), "" if _state(record) == "good" else "dim"),
                output.away(record.created_at_ms),
                record.created_by,
            ]
            for record in found
        ),
        empty="no token yet; `lamplighter token create` makes one",
    )


@token.command()
@click.argument("prefix")
@store.operator_options
@store.store_options
def revoke(prefix: str, by: str | None, reason: str, url: str | None, *, as_json: bool) -> None:
    """End a token. Services notice within a minute.

    PREFIX is what `lamplighter token list` shows, or the whole token.
    """
    known = prefix_of(prefix) or prefix
    answer = store.run(_revoke(url, known, store.operator(by), reason))
    if as_json:
        output.print_json({"prefix": known, "answer": answer.value})
    else:
        done = answer is ChangeAnswer.DONE
        output.print_text(f"{known}: {'revoked' if done else 'was revoked before'}")


def _lifetime_ms(text: str) -> int | None:
    if text == "never":
        return None
    seconds = reading.duration("--expires", text)
    if not 1 <= seconds <= 3650 * 86_400:
        raise InvalidTime(
            f"--expires {shown(text)} is less than a second or more than ten years",
            hint="give how long the token is good for, as in 30d, or `never`",
            value=text,
        )
    return milliseconds(seconds)


def _state(record: TokenRecord) -> str:
    if record.revoked is not None:
        return f"revoked by {record.revoked.by}"
    if record.left_ms is None:
        return "good"
    return f"good for {output.span(record.left_ms / 1000)}" if record.left_ms else "expired"


def _shape(record: TokenRecord) -> dict[str, object]:
    """Return all but the digest."""
    revoked = record.revoked
    return {
        "prefix": record.prefix,
        "name": record.name,
        "scopes": list(record.scopes),
        "tenant": record.tenant,
        "created_at": output.instant(record.created_at_ms),
        "created_by": record.created_by,
        "expires_at": output.instant(record.expires_at_ms),
        "expired": record.left_ms == 0,
        "revoked": None
        if revoked is None
        else {
            "by": revoked.by,
            "reason": revoked.reason,
            "at": output.instant(revoked.at_ms),
        },
    }


# ── with the store ───────────────────────────────────────────────────────────────────────────


async def _create(url: str | None, new: NewToken, by: str, action: str) -> TokenRecord:
    async with store.opened(url) as engine:
        answer = await engine.access.put_token(new, by=by)
        if answer is ChangeAnswer.CONFLICT:
            raise InvalidInput(
                f"there is a token {shown(new.prefix)} already", hint="try again: one is drawn anew"
            )
        about = About(new.prefix, new.tenant, " ".join(new.scopes))
        await noting.note(engine, action, [about], by=by, reason=new.name)
        return await _token(engine, new.prefix)


async def _revoke(url: str | None, prefix: str, by: str, reason: str) -> ChangeAnswer:
    async with store.opened(url) as engine:
        found = await _token(engine, prefix)
        answer = await engine.access.revoke_token(prefix, by=by, reason=reason)
        about = About(prefix, found.tenant, answer.value)
        await noting.note(engine, "token.revoke", [about], by=by, reason=reason)
        return answer


async def _token(engine: Engine, prefix: str) -> TokenRecord:
    found = await engine.access.token(prefix)
    if found is None:
        raise UnknownToken(
            f"there is no token {shown(prefix)}",
            hint="`lamplighter token list` shows the prefixes of all",
            value=prefix,
        )
    return found


async def _tokens(url: str | None) -> list[TokenRecord]:
    found: list[TokenRecord] = []
    cursor: str | None = None
    async with store.opened(url) as engine:
        while True:
            page = await engine.access.tokens(limit=PAGE, cursor=cursor)
            found += page.tokens
            cursor = page.cursor
            if cursor is None:
                return found
