"""What a caller gave that a record cannot keep: named, with what to give instead.

Names that came through our client never get here.
"""

from __future__ import annotations

from struct import error as StructError  # noqa: N812 - it is one

from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.names import NAME_LIMIT, shown

LONGEST_TENANT = 4 * NAME_LIMIT
"""Bytes: scripts read a record up to there, and not its arguments (`brief` in `states.lua`)."""

Unkept = (StructError, UnicodeEncodeError)
"""What is raised where such values are packed."""


def refusal(error: Exception) -> InvalidInput:
    """Say which value of a job does not fit."""
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start]
        return _unwritable(error.object, f"U+{ord(character):04X}, half of a character,")
    return InvalidInput(
        f"a number of a job cannot be kept: {error}",
        hint="give numbers from 0 to 4,294,967,295",
    )


def bad_tenant(name: str, size: int) -> InvalidName:
    """Refuse a tenant of too many bytes, or with a NUL."""
    if size <= LONGEST_TENANT:
        return with_nul(name)
    return InvalidName(
        f"tenant {shown(name)} has {size:,} bytes, the limit is {LONGEST_TENANT}",
        hint=f"shorten it to {NAME_LIMIT} characters",
        value=shown(name),
    )


def with_nul(name: str) -> InvalidName:
    """Refuse a name with a NUL: that is what stands between the parts of a lane."""
    return _unwritable(name, "a NUL character")


def _unwritable(name: str, what: str) -> InvalidName:
    return InvalidName(
        f"the name {shown(name)} holds {what} which Redis is not given",
        hint="take it out of the name",
        value=shown(name),
    )
