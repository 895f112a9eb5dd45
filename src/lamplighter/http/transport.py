"""The way to the service: connections that are kept, and requests that are made again."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.http import address
from lamplighter.http.errors import ServiceUnreachable, error_of
from lamplighter.model.errors import InvalidOption, LamplighterError, extra_hint

try:
    import httpx2
except ModuleNotFoundError as missing:
    raise InvalidOption(
        f"the HTTP client needs `{missing.name}`, which is not installed",
        hint=extra_hint("http"),
        value=missing.name,
    ) from missing

_BACKOFF = Backoff(0.15, 1.5, spread=1 / 3)
_LAST_CALL = 0.5
"""Seconds before the end at which a last try is made; a quarter of all, if that is less."""
_CONNECT = 5.0
"""Seconds that a connection may take: a place that swallows packets must not use up all tries."""
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""After these nothing has happened, for sure."""
_PASSING = frozenset({429, 502, 503, 504})
"""Statuses that may be others the next time."""
_TOO_MANY = 429
"""After this one nothing has happened, for sure."""
_CONNECTIONS = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the service that is no refusal."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Miss:
    """A try without the answer that was wanted."""

    problem: LamplighterError
    passing: bool = True
    """It may be otherwise the next time."""
    begun: bool = True
    """What was asked for may have happened."""
    wait: float = 0.0
    """Seconds after which to come again, if the service has said so."""


class Transport:
    """Sends requests, from whichever event loop asks. Opens nothing before it is asked."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url = address.checked(url)
        self._given = token
        self._timeout = timeout
        self._clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: dict[str, str] | None = None,
        repeatable: bool = True,
    ) -> Answer:
        """Make a request; a refusal is raised as the error that it stands for.

        It is made again if the service is away, busy or overloaded, until its time is over. What is
        not ``repeatable`` is so only where it has certainly not happened.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        deadline = runtime.monotonic() + self._timeout
        tries = 0
        while True:
            tries += 1
            left = max(0.001, deadline - runtime.monotonic())
            url, times = f"{self.url}{path}", httpx2.Timeout(left, connect=min(left, _CONNECT))
            try:
                # The client's own timeout begins anew with each piece of an answer.
                async with asyncio.timeout(left):
                    answer = await self._client().request(
                        method, url, content=body, headers=headers, params=params, timeout=times
                    )
            except (httpx2.TransportError, TimeoutError) as error:
                begun = not isinstance(error, _NOT_SENT)
                miss = _Miss(self._unreachable(error), begun=begun)
            else:
                if answer.is_success and _is_ours(answer):
                    return Answer(answer.status_code, answer.content)
                miss = _missed(answer)
            left = deadline - runtime.monotonic() - min(_LAST_CALL, self._timeout / 4)
            pause = _pause(miss, tries, left)
            again = miss.passing and (repeatable or not miss.begun)
            if not again or pause is None:
                raise miss.problem
            await runtime.sleep(pause)

    async def close(self) -> None:
        """Close the connections of the running loop, and what loops that ended have left."""
        here = asyncio.get_running_loop()
        for loop in [loop for loop in self._clients if loop is here or loop.is_closed()]:
            client = self._clients.pop(loop)
            with contextlib.suppress(Exception):
                await client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            token = address.token_of(self._given)
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            # Closed by the service after five seconds: let it not be the last to know.
            limits = httpx2.Limits(
                max_connections=_CONNECTIONS,
                max_keepalive_connections=_CONNECTIONS,
                keepalive_expiry=4.0,
            )
            client = self._clients[loop] = httpx2.AsyncClient(headers=headers, limits=limits)
        return client

    def _unreachable(self, error: Exception) -> ServiceUnreachable:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        made = ServiceUnreachable(
            f"the service at {self.url} cannot be reached, or did not answer: {said}",
            hint="check the address, and that `lamplighter serve` runs there; what was submitted "
            "with the same idempotency key again is stored once",
            value=self.url,
        )
        made.__cause__ = error
        return made


def _is_ours(answer: httpx2.Response) -> bool:
    """Tell an answer of the service from the page of somebody who stands before it."""
    kind: str = answer.headers.get("Content-Type", "")
    return not answer.content or kind.partition(";")[0].strip().lower() == "application/json"


def _missed(answer: httpx2.Response) -> _Miss:
    """Say what a refusal means for the next try."""
    status = answer.status_code
    told = answer.headers.get("Retry-After", "")
    return _Miss(
        error_of(status, answer.content),
        passing=status in _PASSING,
        begun=status != _TOO_MANY,
        wait=float(told) if told.isdecimal() else 0.0,
    )


def _pause(miss: _Miss, tries: int, left: float) -> float | None:
    """Return the seconds until the next try, or None when no time is ``left`` for one.

    The last try comes when that time is over, however long the pauses have become.
    """
    pause = max(miss.wait, _BACKOFF.after(tries))
    if pause <= left:
        return pause
    return left if left > 0 and miss.wait <= left else None
