"""Who may call a service, and what they have changed: tokens, what is spent, and the audit log.

Of a token the store has the digest only. It tells by its own clock how much of a token's time is
left, so that whoever checks tokens needs no clock that agrees with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.names import WORDS_LIMIT, check_words
from lamplighter.port import texts
from lamplighter.port.guards import check_note
from lamplighter.port.verbs import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import Mark
    from lamplighter.port.values import ChangeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token as it is put."""

    prefix: str
    """By which it is found; not secret."""
    digest: str
    name: str
    scopes: tuple[str, ...]
    tenant: str | None = None
    """The only tenant it is good for; None: all."""
    lifetime_ms: int | None = None
    """How long it is good for; None: until it is revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as the store knows it."""

    prefix: str
    digest: str
    name: str
    scopes: tuple[str, ...]
    tenant: str | None
    created_at_ms: int
    created_by: str
    expires_at_ms: int | None
    left_ms: int | None
    """How long it is still good by the store's clock, 0: it has expired; None: it never does."""
    revoked: Mark | None = None


@dataclass(frozen=True, slots=True)
class TokenPage:
    """Some tokens by their prefixes, and where to go on; ``cursor`` None: that was all."""

    tokens: list[TokenRecord]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Somebody has changed something."""

    id: str
    """Drawn for this entry, so that the same again is not a second one."""
    by: str
    action: str
    object: str
    """What was changed: an id or a name."""
    answer: str
    """What became of it."""
    tenant: str | None = None
    """Whose it was; None: nobody's, or everybody's."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry, and when it was noted."""

    at_ms: int
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some entries, newest first, and where to go on; ``cursor`` None: that was all."""

    records: list[AuditRecord]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class About:
    """Something that was changed."""

    object: str
    tenant: str | None = None
    """Whose it is; None: nobody's, or everybody's."""
    answer: str = "done"


def entries_of(changed: Sequence[About], *, by: str, action: str, reason: str) -> list[AuditEntry]:
    """Make the entries for what somebody has changed in one go."""
    return [
        AuditEntry(
            id=f"{runtime.random_bits(128):032x}",
            by=by,
            action=action,
            object=one.object,
            answer=one.answer,
            tenant=one.tenant,
            reason=reason,
        )
        for one in changed
    ]


class Access(Part):
    """Tokens and the audit log."""

    async def put_token(self, token: NewToken, *, by: str) -> ChangeAnswer:
        """Store a new token: `done`. It expires ``lifetime_ms`` from the store's now.

        The same prefix with the same digest is `already`, with another `conflict`; both change
        nothing.
        """
        check_words("operator's name", by)
        return await self._call("put_token", token, by)

    async def revoke_token(self, prefix: str, *, by: str, reason: str) -> ChangeAnswer:
        """End a token: `done`. Revoked before: `already`, and the first mark stays.

        One that has expired is revoked too. Unknown: `unknown`.
        """
        check_note(by, reason)
        return await self._call("revoke_token", prefix, by, reason)

    async def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries to the audit log, all in one write, at the store's now and in their order.

        An id that is there already is left as it is. Content never makes it fail: what cannot be
        kept is left out, and texts are cut to 1,000 characters.
        """
        if entries:
            await self._call("note_audit", self._call.bounded(entries))

    async def prune_access(self, keep_ms: int, limit: int) -> int:
        """Remove up to ``limit`` audit entries that are older, oldest first, and give how many.

        Up to as many tokens that have expired or were revoked longer ago go with them, and count;
        so do up to as many marks of ``spend`` whose time is over.
        """
        return await self._call("prune_access", keep_ms, limit)

    async def spend(self, what: str, holder: str, keep_ms: int) -> bool:
        """Use up what is good for a single use: a login code, or a session that ends.

        True for the holder that came first, also when it asks again; False for every other. It is
        kept for ``keep_ms`` from the store's now, after which nobody may take it in any case.
        """
        return await self._call("spend", what, holder, keep_ms)

    # Reads.

    async def spent(self, what: str) -> bool:
        """Return whether somebody has spent this."""
        return await self._call("spent", what)

    async def token(self, prefix: str) -> TokenRecord | None:
        """Return one token, also one that has expired or was revoked; or None."""
        return await self._call("token", prefix)

    async def tokens(self, *, limit: int, cursor: str | None = None) -> TokenPage:
        """List tokens by their prefixes (bytewise), also those that are good no more."""
        return await self._call("tokens", limit, cursor)

    async def audit(
        self, *, tenant: str | None = None, limit: int, cursor: str | None = None
    ) -> AuditPage:
        """List audit entries, newest first; with ``tenant`` only those about what is its own."""
        return await self._call("audit", tenant, limit, cursor)


def kept(entry: AuditEntry) -> AuditEntry:
    """Return an entry as every engine keeps it."""
    return AuditEntry(
        id=_kept(entry.id),
        by=_kept(entry.by),
        action=_kept(entry.action),
        object=_kept(entry.object),
        answer=_kept(entry.answer),
        tenant=None if entry.tenant is None else _kept(entry.tenant),
        reason=_kept(entry.reason),
    )


def _kept(text: str) -> str:
    return texts.clean(text)[:WORDS_LIMIT]
