"""A pooler for PostgreSQL that lends a server connection for one transaction, and never twice.

A real pooler gives a client whatever connection is free, often the same again; what a program
keeps in its session then works by luck. Here it never does: every transaction goes to another
server connection than the one before, and nothing is reset in between. Now and then each connection
is searched for what transactions have left in it.
"""

import asyncio
from types import TracebackType
from typing import Self

from tests.proxies.addresses import through
from tests.proxies.background import Background
from tests.proxies.customer import Customer, Usage
from tests.proxies.door import Door
from tests.proxies.leaks import Leak
from tests.proxies.lender import Lender


class Rotation:
    """Listens on a port of this machine and lends connections to the server of ``url``.

    Anybody may connect, without a password; ``url`` has the password for the server, if it wants
    one. Each user, database and set of start-up parameters has at least ``least`` server
    connections, up to ``most``; each is searched after every ``look_every`` transactions.
    """

    def __init__(self, url: str, *, least: int = 3, most: int = 20, look_every: int = 10) -> None:
        if not 2 <= least <= most:
            raise ValueError(f"least={least} and most={most}: to rotate takes two connections")
        self._url = url
        self._least = least
        self._most = most
        self._look_every = look_every
        self._background = Background("rotation")
        self._door: Door | None = None
        self._lenders: dict[frozenset[tuple[str, str]], Lender] = {}
        self._customers: set[Customer] = set()
        self._usages: list[Usage] = []
        self._leaks: list[Leak] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        if self._door is None:
            raise RuntimeError("the rotation has no port yet: call start() first")
        return self._door.port

    def through(self, url: str) -> str:
        """Give an address of the server as it is through this pooler."""
        return through(url, self.port)

    def start(self) -> None:
        """Listen."""
        self._background.start()
        self._door = Door()
        self._background.run(self._door.open(lambda: Customer(self)))

    def stop(self) -> None:
        """Close everything."""
        door, self._door = self._door, None
        if door is not None:
            self._background.call(door.give_up)
            self._background.run(self._close())
            self._background.stop()

    def usages(self) -> list[Usage]:
        """Give what each client has used, in the order in which they came."""
        return list(self._usages)

    def leaks(self) -> list[Leak]:
        """Search every connection that rests, and give all that was ever found."""
        self._background.run(self._look())
        return list(self._leaks)

    def verify(self) -> None:
        """Fail unless transactions went round and left nothing behind."""
        leaks = self.leaks()
        assert not leaks, "sessions were not left clean:\n" + "\n".join(map(str, leaks))
        several = [usage for usage in self._usages if usage.transactions > 1]
        assert several, f"no client of {len(self._usages)} ran two transactions: nothing is proven"
        stuck = [usage for usage in several if usage.repeats or len(usage.pids) < 2]
        assert not stuck, f"some clients were given the same connection again: {stuck}"

    def lender(self, parameters: dict[str, str]) -> Lender:
        key = frozenset(parameters.items())
        if key not in self._lenders:
            self._lenders[key] = Lender(
                self._url,
                parameters,
                least=self._least,
                most=self._most,
                look_every=self._look_every,
                report=self._leaks.extend,
            )
        return self._lenders[key]

    def came(self, customer: Customer) -> None:
        self._customers.add(customer)
        self._usages.append(customer.usage)

    def gone(self, customer: Customer) -> None:
        self._customers.discard(customer)

    async def cancel(self, key: bytes) -> None:
        for customer in self._customers:
            if customer.key == key:
                await customer.cancel()
                return

    async def _look(self) -> None:
        await asyncio.gather(*(lender.look_at_all() for lender in self._lenders.values()))

    async def _close(self) -> None:
        for customer in list(self._customers):
            customer.close()
        for lender in self._lenders.values():
            await lender.close()
