"""Cursors that callers cannot make up: where a listing goes on, signed with its filter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from lamplighter import runtime
from lamplighter.model.names import shown
from lamplighter.server.errors import InvalidCursor

_SIGNATURE = 16
"""Bytes of the signature."""


class Cursors:
    """Signs cursors, and reads those that it has signed for the same listing."""

    def __init__(self, secret: str) -> None:
        drawn = secret or f"{runtime.random_bits(256):064x}"
        self._key = hashlib.sha256(b"cursor\0" + drawn.encode()).digest()

    def written(self, place: str | None, listing: str) -> str | None:
        """Write the place at which this listing goes on; None: nothing follows."""
        if place is None:
            return None
        raw = place.encode()
        text = base64.urlsafe_b64encode(self._signature(raw, listing) + raw)
        return text.decode().rstrip("=")

    def read(self, cursor: str | None, listing: str) -> str | None:
        """Read a cursor, or say that it does not belong here."""
        if cursor is None:
            return None
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise _foreign(cursor) from None
        signature, place = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._signature(place, listing)):
            raise _foreign(cursor)
        return place.decode()

    def _signature(self, place: bytes, listing: str) -> bytes:
        signed = listing.encode("utf-8", "replace") + b"\0" + place
        return hmac.digest(self._key, signed, "sha256")[:_SIGNATURE]


def _foreign(cursor: str) -> InvalidCursor:
    return InvalidCursor(
        f"the cursor {shown(cursor)} does not belong to this listing",
        hint="use `next` of the page before with the same filter, or no cursor to start anew",
        value=cursor,
    )
