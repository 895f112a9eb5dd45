"""An answer whose whole body is there."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Written(Response):
    """A response with all its headers said at once, which is what makes it quick."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str], media: str) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        self.raw_headers += (
            (b"content-type", media.encode("latin-1")),
            (b"content-length", b"%d" % len(body)),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        head = {"type": "http.response.start", "status": self.status_code}
        await send({**head, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})
