"""Answers that are sent while they are made, for as long as somebody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lamplighter.server.route import Stream


class Streamed(Response):
    """A response whose body ends when its maker ends it, or when the reader has gone."""

    def __init__(
        self, status: int, stream: Stream, *, headers: Mapping[str, str], media_type: str
    ) -> None:
        super().__init__(None, status, headers, media_type)
        del self.headers["content-length"]
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; whoever only asked for the head gets no more."""
        head = {"type": "http.response.start", "status": self.status_code}
        try:
            await send({**head, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await self._send_chunks(receive, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._stream.close()

    async def _send_chunks(self, receive: Receive, send: Send) -> None:
        parts = {
            asyncio.ensure_future(self._write(send)),
            asyncio.ensure_future(_wait_until_gone(receive)),
        }
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
        for part in done:
            part.result()

    async def _write(self, send: Send) -> None:
        async for chunk in self._stream.chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
