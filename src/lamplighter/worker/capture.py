"""Catches what handlers print and log, and takes nothing away from where it went before.

Whose text it is, the context variable ``current`` says: tasks that a handler creates inherit it,
and so does ``asyncio.to_thread``. A thread that a handler starts by itself has an empty context;
its text only goes where it always went, unless it runs in ``contextvars.copy_context()``.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Any, Protocol, TextIO, cast

OUT = "out"
ERR = "err"


class Sink(Protocol):
    """Somebody who takes in what is said; from any thread."""

    redact: Callable[[str], str] | None
    """Hides in a text what must not be shown anywhere."""

    def write(self, level: str, text: str) -> None:
        """Take in text; it may have many lines or half of one."""
        ...


current: ContextVar[Sink | None] = ContextVar("lamplighter_speaking", default=None)
"""Who takes in what is said in this context; nobody by default."""
speaker: ContextVar[Sink | None] = ContextVar("lamplighter_speaker", default=None)
"""Who logs, while handlers of the program write it out: what they write is not taken in again."""


class _Deaf:
    """Takes in nothing, but hides what has to be hidden."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.redact: Callable[[str], str] | None = redact

    def write(self, level: str, text: str) -> None:
        pass


class _Speaking:
    __slots__ = ("_sink", "_token")

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self._token: Token[Sink | None] | None = None

    def __enter__(self) -> None:
        self._token = current.set(self._sink)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            current.reset(self._token)


def speaking(sink: Sink | None) -> _Speaking:
    """Let a sink take in what is said inside a ``with`` block, in a task as in a thread."""
    return _Speaking(sink)


# ── the streams ──────────────────────────────────────────────────────────────────────────────


class Tee(io.TextIOBase):
    """A text stream that writes to another one and copies to the present sink.

    Everything else is the other stream's: bytes written to its ``buffer`` are not copied. While
    somebody takes in the text, a stream that is closed or broken is no reason for a handler to
    fail; otherwise it fails as it always did.
    """

    def __init__(self, stream: TextIO, level: str) -> None:
        self.stream = stream
        """Where the text goes."""
        self._level = level

    def write(self, text: str, /) -> int:
        sink = current.get()
        if sink is None:
            return self.stream.write(text)
        with suppress(OSError, ValueError):
            self.stream.write(text if sink.redact is None else sink.redact(text))
        if text:
            # Whatever happens to the copy, print is harmless.
            with suppress(Exception):
                sink.write(self._level, text)
        return len(text)

    def flush(self) -> None:
        if current.get() is None:
            self.stream.flush()
        else:
            with suppress(OSError, ValueError):
                self.stream.flush()

    def writelines(self, lines: Iterable[str], /) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "stream":
            # Asked for before there is one, by whoever copies objects.
            raise AttributeError(name)
        return getattr(self.stream, name)

    def __del__(self) -> None:
        # The base class would close the stream, which is not ours.
        pass

    # What the base class has must be passed on by name.

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.stream.errors

    @property
    def newlines(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.stream.newlines

    @property
    def closed(self) -> bool:
        return self.stream.closed

    def close(self) -> None:
        self.stream.close()

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def readable(self) -> bool:
        return self.stream.readable()

    def writable(self) -> bool:
        return self.stream.writable()

    def seekable(self) -> bool:
        return self.stream.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        return self.stream.tell()

    def truncate(self, size: int | None = None, /) -> int:
        return self.stream.truncate(size)

    def detach(self) -> Any:
        return cast("Any", self.stream).detach()


# ── logging ──────────────────────────────────────────────────────────────────────────────────

_FORMATTER = logging.Formatter()
_OF_STRUCTLOG = frozenset(
    {"event", "exc_info", "exception", "level", "logger", "stack", "timestamp"}
)


def said(record: logging.LogRecord) -> str:
    """Return what a record says: its message, and the traceback if it has one.

    The record stays as it is: a formatter of the program, which comes later, would take over
    what it finds there.
    """
    message = cast("object", record.msg)
    if isinstance(message, dict) and "event" in message and not record.args:
        return _event(cast("Mapping[str, object]", message), record)
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - arguments that do not fit; the program's handlers tell
        text = str(record.msg)
    return _with_traces(text, record.exc_info, record.exc_text, record.stack_info)


def _event(event: Mapping[str, object], record: logging.LogRecord) -> str:
    """Write an event of structlog, which comes as a mapping when a formatter is to render it."""
    fields = " ".join(
        f"{name}={value!r}"
        for name, value in event.items()
        if name not in _OF_STRUCTLOG and not name.startswith("_")
    )
    text = f"{event['event']} {fields}".rstrip()
    error = event.get("exc_info") or record.exc_info
    return _with_traces(text, error, event.get("exception"), event.get("stack"))


def _with_traces(text: str, error: object, traceback: object, stack: object) -> str:
    if error is True:
        error = sys.exc_info()
    elif isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    if not traceback and isinstance(error, tuple) and error[0]:
        traceback = _FORMATTER.formatException(cast("Any", error))
    return "\n".join(str(part) for part in (text, traceback, stack) if part)


def _listen() -> Callable[[], None]:
    """Stand in front of the handlers of every logger; gives back the way to end it.

    Not as a handler of the root logger: that one would miss loggers that do not propagate, would
    be removed when the program configures logging late, and would turn `basicConfig` and the
    warnings of an unconfigured program into nothing.
    """
    inner = logging.Logger.callHandlers
    root = logging.getLogger()
    lowers = not root.handlers and root.level == logging.WARNING

    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        sink = current.get()
        if sink is None:
            inner(self, record)
            return
        with suppress(Exception):
            sink.write(record.levelname.lower(), f"{said(record)}\n")
        # What handlers now write to the streams was taken in already.
        token = current.set(None if sink.redact is None else _Deaf(sink.redact))
        spoken = speaker.set(sink)
        try:
            inner(self, record)
        finally:
            speaker.reset(spoken)
            current.reset(token)

    def end() -> None:
        if logging.Logger.callHandlers is call_handlers:
            logging.Logger.callHandlers = inner
        if lowers and root.level == logging.INFO:
            root.setLevel(logging.WARNING)

    logging.Logger.callHandlers = call_handlers
    if lowers:
        root.setLevel(logging.INFO)
    return end


_end: Callable[[], None] | None = None


def install_streams() -> None:
    """Put the tees in their place; twice is once.

    Best done before the program is imported: some libraries remember a stream when they are.
    """
    for name, level in (("stdout", OUT), ("stderr", ERR)):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Tee):
            setattr(sys, name, Tee(stream, level))


def install() -> None:
    """Begin to catch; once per process, after the program was imported. Twice is once.

    If the program has not configured logging, what is logged from INFO on is caught, and warnings
    and worse still appear on stderr.
    """
    global _end  # noqa: PLW0603 - there is one sys.stdout, too
    install_streams()
    if _end is None:
        _end = _listen()


def uninstall() -> None:
    """Put everything back, as far as nobody else has changed it meanwhile."""
    global _end  # noqa: PLW0603 - see above
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, Tee):
            setattr(sys, name, stream.stream)
    if _end is not None:
        _end()
        _end = None
