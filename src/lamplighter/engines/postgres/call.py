"""What a verb is given: a way to run one statement."""

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Call(Protocol):
    """One round trip to the store, repeated while the server cannot be reached.

    A verb is a plain ``async def verb(call: Call, …)``: it turns values into parameters, sends one
    statement, and turns rows into answers.

        rows = await call.rows(f"SELECT * FROM {call.function('renew')}(%s, %s)", (ids, leases))

    Statements use ``%s`` and are committed when they have been run. A statement may be run twice
    when a reply was lost, so each must be repeatable. Answers come in the binary format.
    """

    @property
    def schema(self) -> str:
        """The schema the store lives in, as a name without quotes."""
        ...

    def function(self, name: str) -> str:
        """The full, quoted name of a function or table of the store: ``"lamplighter"."claim"``."""
        ...

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
    ) -> list[Row]:
        """Run one statement and fetch all it answers.

        ``urgent`` is for what keeps a worker alive (renew, beat): it never waits for other calls.
        ``instead`` is sent, with the same parameters, once the statement has waited for a lock
        longer than it wants to.
        """
        ...
