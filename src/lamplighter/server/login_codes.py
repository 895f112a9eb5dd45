"""Login codes: good for one login, for some minutes, and for nothing else."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.access import code_prefix_of, digest_of, granted
from lamplighter.server.auth import Principal, invalid_token
from lamplighter.server.errors import InvalidToken
from lamplighter.server.remembered import forget_first

if TYPE_CHECKING:
    from lamplighter.client import Client

LIFETIME = 15 * 60.0
"""Seconds for which a code of this process is good."""
MOST = 100
"""Codes of this process that are remembered."""
KEEP_MS = 86_400_000
"""For how long it is known that a code was used: longer than any of them is good."""

_AT_ONCE = 8
"""Reads of the store at once: whoever tries many codes must not keep it busy."""
_HOW = "make another: `lamplighter token login` prints it"


class LoginCodes:
    """Knows whose codes are good: those of the store, and those that this process has made."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._own: dict[str, tuple[Principal, float]] = {}
        self._reading = asyncio.Semaphore(_AT_ONCE)

    def issue(self, principal: Principal) -> str:
        """Make a code that only this process knows."""
        # No word of a dictionary, and short enough for a line of a terminal.
        text = f"{runtime.random_bits(160):040x}"
        self._own[digest_of(text)] = (principal, runtime.boottime() + LIFETIME)
        forget_first(self._own, MOST)
        return text

    async def read(self, code: str) -> tuple[Principal, str]:
        """Return who a code is for and its prefix, without using it up, or refuse it.

        The prefix is empty for a code of this process.
        """
        digest = digest_of(code)
        own = self._own.get(digest)
        if own is not None:
            if runtime.boottime() >= own[1]:
                raise _bad("its time is over")
            return own[0], ""
        prefix = code_prefix_of(code)
        if prefix is None:
            raise _bad("it is none that this service knows")
        async with self._reading:
            engine = await self._client.engine()
            record = await self._client.repeatable(lambda: engine.access.token(prefix))
        if record is None or not hmac.compare_digest(record.digest, digest):
            raise _bad("it is none that this service knows")
        if record.revoked is not None or record.left_ms == 0:
            raise _bad("its time is over")
        name = f"{record.name}/{record.prefix}"
        return Principal(name=name, scopes=granted(record.scopes), tenant=record.tenant), prefix

    async def spend(self, code: str, prefix: str) -> None:
        """Use up a code that was read, or refuse it because somebody has."""
        digest = digest_of(code)
        if prefix:
            engine, holder = await self._client.engine(), runtime.nonce()
            first = await self._client.repeatable(
                lambda: engine.access.spend(f"code {digest}", holder, KEEP_MS)
            )
        else:
            first = self._own.pop(digest, None) is not None
        if not first:
            raise _bad("it was used before")


def _bad(why: str) -> InvalidToken:
    return invalid_token(f"the login code is not good: {why}", _HOW)
