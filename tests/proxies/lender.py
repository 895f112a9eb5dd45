"""The server connections of one user and database, lent so that nobody gets the same twice."""

import asyncio
from collections.abc import Callable

from tests.proxies.leaks import Leak
from tests.proxies.session import Session, SessionFailed, open_session


class Lender:
    """Lends the session that has rested longest, but never the one that was given back last."""

    def __init__(
        self,
        url: str,
        parameters: dict[str, str],
        *,
        least: int,
        most: int,
        look_every: int,
        report: Callable[[list[Leak]], None],
    ) -> None:
        self._url = url
        self._parameters = parameters
        self._least = least
        self._most = most
        self._look_every = look_every
        self._report = report
        self._idle: list[Session] = []
        self._all: set[Session] = set()
        self._coming = 0
        self._news = asyncio.Event()
        self._looks: set[asyncio.Task[None]] = set()

    async def welcome(self) -> bytes:
        """Give the messages by which the server introduces itself."""
        session = next(iter(self._all), None)
        if session is None:
            session = await self._open()
            self._rest(session)
        return session.welcome()

    async def take(self, last: Session | None) -> Session:
        """Give a session that is not ``last``, as soon as there is one."""
        while True:
            size = len(self._all) + self._coming
            fit = [session for session in self._idle if session is not last]
            if fit and size >= self._least:
                self._idle.remove(fit[0])
                return fit[0]
            if size < self._most:
                return await self._open()
            self._news.clear()
            await self._news.wait()

    def give_back(self, session: Session) -> None:
        """Take a session back after a transaction; now and then, look what was left in it."""
        session.borrower = None
        session.uses += 1
        if session.closed:
            return
        if session.tainted:
            session.close()
        elif session.uses % self._look_every == 0:
            look = asyncio.get_running_loop().create_task(self._look(session))
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
        else:
            self._rest(session)

    async def look_at_all(self) -> None:
        """Look at every session that rests."""
        await asyncio.gather(*self._looks)
        resting, self._idle = self._idle, []
        await asyncio.gather(*map(self._look, resting))

    async def close(self) -> None:
        """Close all sessions. One that is being looked at must not be closed under the library."""
        await asyncio.gather(*self._looks)
        for session in list(self._all):
            session.close()

    async def _open(self) -> Session:
        self._coming += 1
        try:
            session = await open_session(self._url, self._parameters, self._lost)
        finally:
            self._coming -= 1
        self._all.add(session)
        return session

    async def _look(self, session: Session) -> None:
        try:
            self._report(await session.look())
        except SessionFailed:
            session.close()
        else:
            self._rest(session)

    def _rest(self, session: Session) -> None:
        if not session.closed:
            self._idle.append(session)
        self._news.set()

    def _lost(self, session: Session) -> None:
        self._all.discard(session)
        if session in self._idle:
            self._idle.remove(session)
        self._news.set()
