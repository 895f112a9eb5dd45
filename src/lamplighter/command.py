"""Programs as jobs: started without a shell, given their payload on stdin, and never left alone.

The command runs in a session of its own. When its run has to end, the whole process group gets
SIGTERM, and SIGKILL if that does not help; what is left of the group when the command ends by
itself is killed too, so that nothing of a job outlives its run.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from lamplighter import payload, runtime
from lamplighter.config import without_secrets
from lamplighter.context import CancelRequested, Context
from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.outcome import Reject
from lamplighter.registry import JobType

LOOK = 0.1
"""Seconds between two looks whether the run should end."""
PATIENCE = 3.0
"""Seconds between SIGTERM and SIGKILL."""
HEAD, TAIL = 2 * 1024, 6 * 1024
"""Bytes that are kept of the beginning and of the end of each output."""
STDERR_LINES = 20
"""Last lines of stderr that an error shows."""

_PIECE = 64 * 1024
_LAST_PIECES = 64
"""More than a pipe holds; one that is filled again and again must not keep us."""
_alive: set[subprocess.Popen[bytes]] = set()


class CommandFailed(Exception):
    """A command ended with a code that is neither success nor a reason never to try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program and how to start it."""

    argv: tuple[str, ...]
    no_retry_codes: frozenset[int] = frozenset()
    """Exit codes that mean: never again."""
    env: Mapping[str, str] | None = None
    """Variables beside those of the worker."""
    cwd: str | None = None

    @classmethod
    def checked(
        cls,
        argv: Sequence[str],
        *,
        no_retry_codes: Collection[int],
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
    ) -> Command:
        """Make a command of what a user gave."""
        if isinstance(argv, (str, bytes)) or not argv or not all(map(_is_word, argv)):
            raise InvalidOption(
                f"{shown(argv)} is no command",
                hint='give the program and its arguments as a list, as in ["pg_dump", "shop"]; '
                'there is no shell, unless you call one: ["sh", "-c", "…"]',
                value=argv,
            )
        if not isinstance(no_retry_codes, Collection) or not all(  # pyright: ignore[reportUnnecessaryIsInstance]
            type(code) is int and 0 < code < 256 for code in no_retry_codes
        ):
            raise InvalidOption(
                f"no_retry_codes is {shown(no_retry_codes)}",
                hint="give exit codes between 1 and 255, as in no_retry_codes=(2,)",
                value=no_retry_codes,
            )
        return cls(
            argv=tuple(argv),
            no_retry_codes=frozenset(no_retry_codes),
            env=None if env is None else dict(env),
            cwd=None if cwd is None else str(cwd),
        )

    def run(self, ctx: Context, payload: dict[str, object]) -> str:
        """Run the command to its end; gives what it wrote to stdout, cut in the middle."""
        process = self._start(ctx)
        _alive.add(process)
        try:
            watched = _Watched(process, _written(payload), ctx)
            stopped = watched.watch()
        finally:
            _end(process)
        if stopped:
            raise CancelRequested(ctx.job_id)
        code = process.returncode
        if code == 0:
            return watched.stdout.text()
        told = f"{shown(self.argv[0])} {_ended_how(code)}"
        lines = watched.stderr.text().rstrip().splitlines()[-STDERR_LINES:]
        if lines:
            told += ":\n" + "\n".join(lines)
        if code in self.no_retry_codes:
            raise Reject(told)
        raise CommandFailed(told)

    def _start(self, ctx: Context) -> subprocess.Popen[bytes]:
        about = {"LAMPLIGHTER_JOB_ID": ctx.job_id, "LAMPLIGHTER_ATTEMPT": str(ctx.attempt)}
        try:
            return subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.cwd,
                env={**without_secrets(os.environ), **about, **(self.env or {})},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, nothing else
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            if self.cwd is not None and not Path(self.cwd).is_dir():
                raise Reject(
                    f"the folder {shown(self.cwd)} does not exist where the worker runs; "
                    "create it, or correct `cwd`"
                ) from error
            why = "may not be run" if isinstance(error, PermissionError) else "was not found"
            raise Reject(
                f"the command {shown(self.argv[0])} {why} where the worker runs; install it "
                "there, give its full path, or correct PATH"
            ) from error


class CommandType(JobType):
    """A job type whose arguments are whatever JSON object the command reads from stdin."""

    def __init__(
        self,
        command: Command,
        *,
        name: str,
        **options: Any,
    ) -> None:
        super().__init__(command.run, name=name, **options)
        self.signature = replace(self.signature, text=f"{name}(**payload)", positional=())
        self._positional = ()
        self.schema = '{"type": "object"}'
        self.hash = self._hash()

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bytes:
        """Write the payload; every name is fine, but nothing goes by position."""
        if args:
            given = len(args) if self.secrets else args
            told = counted(len(args), "argument by position was", "arguments by position were")
            self._misfit(f"{told} given", given)
        return payload.encode(dict(kwargs), secrets=self.secrets)

    def decode(self, written: bytes) -> dict[str, object]:
        """Return the payload as the handler's one parameter."""
        return {"payload": payload.object_in(written, secret=bool(self.secrets))}


def kill_all() -> None:
    """Kill every command of this process, which is about to end."""
    for process in tuple(_alive):
        _signal(process, signal.SIGKILL)


class _Output:
    """What a command wrote: all of it goes to the log, its beginning and its end are kept here."""

    def __init__(self, ctx: Context, level: str) -> None:
        self._ctx = ctx
        self._level = level
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._line = ""
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        *lines, self._line = (self._line + self._decoder.decode(data, final=not data)).split("\n")
        if self._line and (not data or len(self._line) > _PIECE):
            lines, self._line = [*lines, self._line], ""
        if lines:
            self._ctx.log("\n".join(lines), level=self._level)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        beyond = len(self._tail) - TAIL
        if beyond > 0:
            del self._tail[:beyond]
            self._cut += beyond

    def text(self) -> str:
        gap = f"\n… ({counted(self._cut, 'byte')} cut) …\n".encode() if self._cut else b""
        text = bytes(self._head + gap + self._tail).decode(errors="replace")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


class _Watched:
    """A running command, its three pipes, and the wish that it may end."""

    def __init__(self, process: subprocess.Popen[bytes], data: bytes, ctx: Context) -> None:
        self.stdout = _Output(ctx, "out")
        self.stderr = _Output(ctx, "err")
        self._ctx = ctx
        self._process = process
        self._data = memoryview(data)
        self._selector = selectors.DefaultSelector()
        self._reading = 2
        for stream, output in (
            (process.stdin, None),
            (process.stdout, self.stdout),
            (process.stderr, self.stderr),
        ):
            pipe = cast("IO[bytes]", stream)
            os.set_blocking(pipe.fileno(), False)
            event = selectors.EVENT_WRITE if output is None else selectors.EVENT_READ
            self._selector.register(pipe, event, output)

    def watch(self) -> bool:
        """Wait for the end; True: it was told to come to it."""
        stop_at: float | None = None
        with self._selector:
            while True:
                if stop_at is None and self._ctx.cancel_requested:
                    _signal(self._process, signal.SIGTERM)
                    stop_at = runtime.monotonic() + PATIENCE
                if self._has_ended() and (stop_at is None or not self._reading):
                    break
                if stop_at is not None and runtime.monotonic() >= stop_at:
                    break
                # Closed outputs mostly mean that it is about to end.
                self._move(LOOK if self._reading else LOOK / 20)
            # What it wrote last; what its descendants may still write is not waited for.
            for _ in range(_LAST_PIECES):
                if not self._move(0):
                    break
        return stop_at is not None

    def _has_ended(self) -> bool:
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        # Not reaped yet: its number cannot become that of another group before we kill ours.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _move(self, timeout: float) -> bool:
        """Move data through the pipes that are ready; tells whether there were any."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            pipe = cast("IO[bytes]", key.fileobj)
            if self._write(pipe) if key.data is None else self._read(pipe, key.data):
                self._selector.unregister(pipe)
                with contextlib.suppress(OSError):
                    pipe.close()
        return bool(ready)

    def _write(self, pipe: IO[bytes]) -> bool:
        """Tell whether everything is written, or nobody reads it."""
        try:
            self._data = self._data[os.write(pipe.fileno(), self._data[:_PIECE]) :]
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not self._data

    def _read(self, pipe: IO[bytes], output: _Output) -> bool:
        """Tell whether the end was reached."""
        try:
            data = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return False
        output.add(data)
        if not data:
            self._reading -= 1
        return not data


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind: no process of the group, no zombie, no open pipe."""
    _signal(process, signal.SIGKILL)
    _alive.discard(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _prctl() -> Any:
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


_set_death_signal = _prctl()


def _die_with_parent() -> None:
    """Have the system kill the command when its worker is killed. Runs between fork and exec."""
    if _set_death_signal is not None:
        _set_death_signal(1, signal.SIGKILL)


def _written(values: Mapping[str, object]) -> bytes:
    return payload.encode(values) + b"\n"


def _ended_how(code: int) -> str:
    if code > 0:
        return f"ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-code} ({name})"


def _is_word(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value
