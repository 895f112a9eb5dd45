"""Turn an exception into what the store keeps of it: bounded, printable, recognisable."""

from __future__ import annotations

import errno
import hashlib
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lamplighter.model.errors import LamplighterError, ProviderFailed
from lamplighter.model.job import ErrorInfo
from lamplighter.worker.link import Broken

MESSAGE_LIMIT = 4 * 1024
TRACEBACK_LIMIT = 16 * 1024
BROKEN_LIMIT = 64 * 1024
FINGERPRINT_FRAMES = 3

_OURS = str(Path(__file__).parent.parent)
_LIBRARIES = tuple(
    path
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)
_CUT = "\n… (cut) …\n"

NO_ROOM = "no-room"
"""Code of a process that could not start because the machine had no room for it."""
_NO_ROOM = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})

Redact = Callable[[str], str]
"""Hides the values of secret arguments in a text."""


_UNSHOWABLE = ErrorInfo(
    type="Exception",
    message="(the exception cannot be shown)",
    fingerprint="unshowable",
    kinds=("Exception", "BaseException"),
)


def describe(error: BaseException, redact: Redact | None = None) -> ErrorInfo:
    """Say what went wrong in a handler. Never raises, whatever the exception does.

    ``redact`` hides what must not be shown; before anything is cut, which could hide it from it.
    """
    try:
        return _described(error, redact)
    except BaseException:  # noqa: BLE001 - classes can be as odd as their instances
        return _UNSHOWABLE


def _described(error: BaseException, redact: Redact | None) -> ErrorInfo:
    kind = type(error)
    trace = _without_our_frames(error.__traceback__)
    return ErrorInfo(
        type=printable(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), 256),
        message=_message(error, redact),
        traceback=printable(_shown(_formatted(error, trace), redact), TRACEBACK_LIMIT),
        fingerprint=_fingerprint(kind, trace),
        kinds=tuple(base.__name__ for base in kind.__mro__ if base is not object),
    )


def plain(error: Exception, redact: Redact | None = None) -> ErrorInfo:
    """Say what went wrong before the handler ran; our own frames would tell nobody anything."""
    kind = type(error)
    return ErrorInfo(
        type=kind.__qualname__,
        message=_message(error, redact),
        fingerprint=_fingerprint(kind, None),
        kinds=tuple(base.__name__ for base in kind.__mro__ if base is not object),
    )


def timed_out(timeout: float, *, killed: bool = False) -> ErrorInfo:
    """Say that a handler used up its time."""
    return _out_of_time(f"still running after its timeout of {timeout:g} s", killed=killed)


def stalled(seconds: float, *, killed: bool = False) -> ErrorInfo:
    """Say that a handler has not come any further for too long."""
    return _out_of_time(
        f"no progress for {seconds:g} s, its `stalled_after`", killed=killed, fingerprint="stalled"
    )


def _out_of_time(why: str, *, killed: bool, fingerprint: str = "timed-out") -> ErrorInfo:
    end = "; its process was killed because the handler could not be stopped" if killed else ""
    return ErrorInfo(
        type="TimedOut", message=f"{why}{end}", fingerprint=fingerprint, kinds=("TimedOut",)
    )


def broken(error: BaseException) -> Broken:
    """Return what a process says that cannot start; of a provider, with the traceback."""
    root = error.__cause__ if isinstance(error, ProviderFailed) else error
    if isinstance(root, MemoryError) or (isinstance(root, OSError) and root.errno in _NO_ROOM):
        return Broken(NO_ROOM, describe(root).text, "")
    if not isinstance(error, LamplighterError):
        info = describe(error)
        return Broken("error", info.traceback or info.message, "")
    cause = error.cause
    if isinstance(error, ProviderFailed) and error.__cause__ is not None:
        cause += f"\n\n{describe(error.__cause__).traceback}"
    return Broken(error.code, printable(cause, BROKEN_LIMIT), error.hint)


def unstarted(name: str, broken: Broken) -> ErrorInfo:
    """Say that no process could be started for a job of a type."""
    cause, _, trace = broken.cause.strip().partition("\n\n")
    if "\n" in cause:
        # A traceback: its last line says what went wrong.
        cause, trace = cause.splitlines()[-1], broken.cause
    elif cause.endswith(":") and trace:
        cause += f" {trace.splitlines()[-1]}"
    hint = f"; {broken.hint}" if broken.hint else ""
    return ErrorInfo(
        type="ProcessNotStarted",
        message=printable(
            f"no process could be started for `{name}`: {cause}{hint}", MESSAGE_LIMIT
        ),
        traceback=printable(trace, TRACEBACK_LIMIT),
        fingerprint="process-not-started",
        kinds=("ProcessNotStarted",),
    )


def printable(text: str, limit: int) -> str:
    """Make text storable everywhere: valid UTF-8, no NUL, at most ``limit`` bytes."""
    data = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    # The end names the error, the beginning shows how one got there.
    head, tail = limit // 4, limit - limit // 4 - len(_CUT.encode())
    return data[:head].decode(errors="ignore") + _CUT + data[-tail:].decode(errors="ignore")


def text_of(value: object, what: str = "value", redact: Redact | None = None) -> str:
    """Write anything a user made as text, storable and short. Never raises."""
    try:
        # Of a subclass of str only the characters are taken, not its methods.
        text = str.__str__(str(value))
    except BaseException:  # noqa: BLE001 - __str__ is user code
        text = f"(the {what} cannot be shown: its __str__ raised)"
    return printable(_shown(text, redact), MESSAGE_LIMIT)


def _shown(text: str, redact: Redact | None) -> str:
    return text if redact is None else redact(text)


def _message(error: BaseException, redact: Redact | None) -> str:
    return text_of(error, "exception", redact)


def _formatted(error: BaseException, trace: TracebackType | None) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:  # noqa: BLE001 - formatting calls user code
        return "(the traceback cannot be shown)"


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OURS):
        inner = inner.tb_next
    return inner


def _fingerprint(kind: type[BaseException], trace: TracebackType | None) -> str:
    """Hash the kind and the innermost functions of the user; lines move too often to count."""
    frames: list[tuple[bool, str]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{Path(code.co_filename).name}:{code.co_name}"
        frames.append((code.co_filename.startswith(_LIBRARIES), place))
        trace = trace.tb_next
    users = [place for library, place in frames if not library] or [place for _, place in frames]
    places = [f"{kind.__module__}.{kind.__qualname__}", *users[-FINGERPRINT_FRAMES:]]
    return hashlib.sha256("\n".join(places).encode(errors="replace")).hexdigest()[:16]
