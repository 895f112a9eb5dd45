"""Tokens of the store, remembered for a moment."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.model.access import granted
from lamplighter.port.access import TokenRecord
from lamplighter.server.auth import ANYBODY, Principal, invalid_token, token_expired

FRESH = 30.0
"""Seconds for which what was read is good: so long a token that was revoked may still be used."""
FRESH_UNKNOWN = 1.0
"""The same, for a token that is not there: it may have just been made."""
MOST = 10_000
"""Tokens that are remembered."""
MOST_UNKNOWN = 1_000
"""Prefixes without a token that are remembered."""
_AT_ONCE = 8
"""Reads at once of what is not known: whoever tries many prefixes must not keep the store busy."""
_HOW = "make one: `lamplighter token create`"


@dataclass(frozen=True, slots=True)
class _Seen:
    record: TokenRecord | None
    principal: Principal
    at: float
    ends: float
    """When it expires, by the clock of this process."""


class Tokens:
    """Knows whose tokens are good."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Apart, so that whoever tries many prefixes drives nothing out that is good.
        self._seen: dict[str, _Seen] = {}
        self._unknown: dict[str, _Seen] = {}
        self._reading = asyncio.Semaphore(_AT_ONCE)
        self._renewing: dict[str, asyncio.Task[_Seen]] = {}

    async def principal(self, prefix: str, digest: str) -> Principal:
        """Say who has the token of this prefix and digest, or refuse it."""
        seen = await self._look(prefix)
        record = seen.record
        if record is None or not hmac.compare_digest(record.digest, digest):
            raise invalid_token("the store has no such token", _HOW)
        if record.revoked is not None:
            raise invalid_token("it was revoked", _HOW)
        if runtime.boottime() >= seen.ends:
            raise token_expired()
        return seen.principal

    async def held(self, prefix: str, *, expires: bool) -> Principal:
        """Say who has the token of this prefix, for a session that began with it.

        Without ``expires`` its own time does not count: a login code is over long before.
        """
        seen = await self._look(prefix)
        if seen.record is None or seen.record.revoked is not None:
            raise invalid_token("what the session began with was revoked", _HOW)
        if expires and runtime.boottime() >= seen.ends:
            raise token_expired()
        return seen.principal

    async def _look(self, prefix: str) -> _Seen:
        seen = self._fresh(prefix)
        if seen is None and prefix in self._seen:
            seen = await self._renewed(prefix)
        elif seen is None:
            async with self._reading:
                # Somebody may have read it while this one waited.
                seen = self._fresh(prefix) or await self._read(prefix)
        return seen

    async def _renewed(self, prefix: str) -> _Seen:
        """Read a token again that is in use, without standing in line; once for all who wait."""
        task = self._renewing.get(prefix)
        if task is None:
            task = runtime.spawn(self._read(prefix), name="token", on_crash=_told)
            self._renewing[prefix] = task
            task.add_done_callback(lambda _: self._renewing.pop(prefix))
        return await asyncio.shield(task)

    def _fresh(self, prefix: str) -> _Seen | None:
        seen = self._seen.get(prefix) or self._unknown.get(prefix)
        if seen is None:
            return None
        fresh = FRESH_UNKNOWN if seen.record is None else FRESH
        return seen if runtime.boottime() - seen.at < fresh else None

    async def _read(self, prefix: str) -> _Seen:
        # From before it was read: what was revoked since is noticed the sooner.
        now = runtime.boottime()
        engine = await self._client.engine()
        record = await self._client.repeatable(lambda: engine.access.token(prefix))
        left = None if record is None else record.left_ms
        ends = float("inf") if left is None else now + left / 1000
        seen = _Seen(record, ANYBODY if record is None else _principal(record), now, ends)
        self._seen.pop(prefix, None)
        self._unknown.pop(prefix, None)
        kept, most = (self._unknown, MOST_UNKNOWN) if record is None else (self._seen, MOST)
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[prefix] = seen
        return seen


def _told(_: BaseException) -> None:
    """Leave an error to those who wait."""


def _principal(record: TokenRecord) -> Principal:
    # Two tokens of one name are two callers: each has idempotency keys of its own.
    return Principal(
        name=f"{record.name}/{record.prefix}",
        scopes=granted(record.scopes),
        tenant=record.tenant,
    )
