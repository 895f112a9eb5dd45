"""What a verb is given: a way to run one script."""

from collections.abc import Sequence
from typing import Any, Protocol

Argument = bytes | str | int | float


class Call(Protocol):
    """One round trip to the store, repeated while the server cannot be reached.

    A verb is a plain ``async def verb(call: Call, …)``: it turns values into arguments, runs one
    script, and turns what comes back into answers.

        said = await call.run("renew", (lease_ms, *ids), shard=2, urgent=True)

    A script may be run twice when a reply was lost, so each must be repeatable.
    """

    @property
    def shards(self) -> int:
        """How many shards the store has; they are numbered from 0."""
        ...

    @property
    def replicated(self) -> bool:
        """Whether replicas are to have what a script has written before it is answered."""
        ...

    async def run(
        self,
        script: str,
        args: Sequence[Argument],
        *,
        shard: int = 0,
        urgent: bool = False,
    ) -> Any:
        """Run ``lua/<script>.lua`` on one shard and give what it returns: bytes, numbers, lists.

        The script gets the shard's prefix as ``KEYS[1]``, the key of the store's mark as
        ``KEYS[2]``, the clock as ``ARGV[1]`` and ``args`` from ``ARGV[2]`` on. Where the mark is
        gone nothing is run: StoreLost.

        ``urgent`` is for what keeps a worker alive (renew, beat): it never waits behind others.
        """
        ...
