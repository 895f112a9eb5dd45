"""Why somebody changes something, as it is kept for others to see."""

from __future__ import annotations

import msgspec

from lamplighter.model.errors import InvalidInput
from lamplighter.model.names import check_words
from lamplighter.server.errors import InvalidQuery


class ReasonQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Why something is done."""

    reason: str = ""
    """Kept with what is changed, for others to see."""


def reason_of(query: ReasonQuery) -> str:
    """Check the reason, or say why it cannot be noted."""
    try:
        return check_words("reason", query.reason)
    except InvalidInput as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None
