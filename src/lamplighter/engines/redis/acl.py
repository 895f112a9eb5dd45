"""The rights that a user of the server needs, and the rule that gives them and no others."""

from __future__ import annotations

from lamplighter.engines.redis import scripts
from lamplighter.engines.redis.address import Address, Durability

_OUTSIDE = ("BLPOP", "EVAL", "EVALSHA", "INFO", "PING", "TIME")
"""What is run outside of scripts."""


def needed(address: Address) -> tuple[str, ...]:
    """Return all commands that a user of the store needs."""
    more = [
        *(["WAIT"] if address.durability is Durability.REPLICATED else []),
        *(["SELECT"] if address.db else []),
    ]
    return tuple(sorted({*_OUTSIDE, *more, *scripts.commands()}))


def key_pattern(address: Address) -> str:
    """Return the right to use all keys of the store, as ACL SETUSER wants it."""
    return f"~{{{address.prefix}:*"


def rule(address: Address) -> str:
    """Return the rule that gives a user all that is needed and takes away all else."""
    # To be called by name in CLIENT LIST is only for people who look at the server.
    commands = " ".join(f"+{name.lower()}" for name in ("client|setname", *needed(address)))
    return f"resetchannels resetkeys {key_pattern(address)} -@all {commands}"
