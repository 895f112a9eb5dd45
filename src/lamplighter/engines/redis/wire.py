"""The C library that packs commands and parses replies, as it really is: its types say less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import hiredis
from hiredis import ProtocolError, ReplyError

from lamplighter.engines.redis.call import Argument

__all__ = ["MORE", "Parser", "ProtocolError", "ReplyError", "pack", "parser"]

MORE = object()
"""What a parser gives while a reply is not complete."""

_library = cast("Any", hiredis)
pack: Callable[[Sequence[Argument]], bytes] = _library.pack_command
"""Write a command, given as a tuple, as it is sent."""


class Parser(Protocol):
    """Cuts what comes from a server into replies."""

    def feed(self, data: bytearray, start: int, size: int, /) -> None:
        """Take what has come."""
        ...

    def gets(self) -> Any:
        """Return the next reply, or `MORE`. An error of the server is a ReplyError, not raised."""
        ...


def parser() -> Parser:
    """Make a parser that leaves text as bytes."""
    return _library.Reader(notEnoughData=MORE)
