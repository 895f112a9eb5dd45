"""The line between a child and a slot process: one job out, one outcome back.

Frames are those of `link`; jobs and outcomes travel field by field, so that nothing that arrives
can be more than data.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import msgspec

from lamplighter.model import outcome as model
from lamplighter.model.isolation import Surroundings
from lamplighter.model.job import Claim, Delivery, ErrorInfo, Extras, Fence, Job, Level
from lamplighter.model.journal import Journal
from lamplighter.model.outcome import AbandonCause, Outcome
from lamplighter.model.retry import Retry
from lamplighter.worker.link import Broken, Link, Message
from lamplighter.worker.run import Run, Stop

HEAD = 4
"""Bytes of a frame's length."""

# ── the child says ───────────────────────────────────────────────────────────────────────────


class Begin(Message, frozen=True):
    """Become ready to run jobs of this program."""

    spec: str
    settings: dict[str, Any]
    path: list[str]
    surroundings: Surroundings
    grouped: bool
    """A control group counts the processes, so that the coarser limit of the user need not."""


class Do(Message, frozen=True):
    """Run this job."""

    number: int
    timeout: float
    fence: tuple[int, str]
    worker: str
    handout: int
    job: tuple[Any, ...]
    """The job's fields in their order, options aside."""
    extras: tuple[str | None, float | None, Sequence[str], dict[str, Any], Sequence[str]] | None


class Halt(Message, frozen=True):
    """Bring this run to its end."""

    number: int
    why: Stop
    soft_in: float
    """Seconds between the run's start and this end of it: they tell which of its times is over."""


FromChild = Begin | Do | Halt

# ── the slot process says ────────────────────────────────────────────────────────────────────


class Ready(Message, frozen=True):
    """I can run a job now."""


class Noted(Message, frozen=True):
    """What the run has said since the last time."""

    number: int
    journal: Journal


class Done(Message, frozen=True):
    """The run has ended."""

    number: int
    kind: str
    """Name of the outcome; empty: none."""
    values: list[Any]
    """Its fields in their order, the error and the exception aside."""
    error: ErrorInfo | None
    journal: Journal | None
    rss: int
    """Bytes of memory that the process has now."""
    spent: bool = False
    """It has changed what the next run would meet: I should get no other."""


FromSlot = Ready | Broken | Noted | Done

# ── claims ───────────────────────────────────────────────────────────────────────────────────

_JOB = tuple(field.name for field in fields(Job) if field.name != "extras")


def do(run: Run) -> Do:
    """Write a run's claim."""
    claim, job = run.claim, run.claim.job
    extras, written = job.extras, None
    if extras != _NO_EXTRAS:
        retry = None if extras.retry is None else extras.retry.to_json()
        written = (retry, extras.timeout, extras.tags, dict(extras.metadata), extras.secrets)
    return Do(
        run.number,
        run.timeout,
        (claim.fence.lease, claim.fence.nonce),
        claim.worker,
        claim.handout,
        tuple([getattr(job, name) for name in _JOB]),
        written,
    )


def claim_of(message: Do) -> Claim:
    """Read a claim."""
    values: dict[str, Any] = dict(zip(_JOB, message.job, strict=True))
    values["level"] = _LEVELS[values["level"]]
    values["delivery"] = _DELIVERIES[values["delivery"]]
    extras = _NO_EXTRAS
    if message.extras is not None:
        retry, timeout, tags, metadata, secrets = message.extras
        extras = Extras(
            retry=None if retry is None else Retry.from_json(retry),
            timeout=timeout,
            tags=tuple(tags),
            metadata=metadata,
            secrets=tuple(secrets),
        )
    return Claim(
        job=Job(extras=extras, **values),
        fence=Fence(*message.fence),
        worker=message.worker,
        handout=message.handout,
    )


_NO_EXTRAS = Extras()
_LEVELS = {level.value: level for level in Level}
_DELIVERIES = {delivery.value: delivery for delivery in Delivery}

# ── outcomes ─────────────────────────────────────────────────────────────────────────────────

_KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind
    for kind in (
        model.Succeeded,
        model.Failed,
        model.TimedOut,
        model.Rejected,
        model.Misfit,
        model.Snoozed,
        model.Cancelled,
        model.Released,
        model.Held,
        model.Abandoned,
    )
}
_FIELDS = {
    # The error travels apart, an exception not at all: nothing that arrives is more than data.
    name: tuple(field.name for field in fields(kind) if field.name not in {"error", "exception"})
    for name, kind in _KINDS.items()
}


def done(
    number: int, outcome: Outcome | None, journal: Journal | None, rss: int, *, spent: bool = False
) -> Done:
    """Write what a run came to."""
    if outcome is None:
        return Done(number, "", [], None, journal, rss, spent)
    kind = type(outcome).__name__
    values = [getattr(outcome, name) for name in _FIELDS[kind]]
    return Done(number, kind, values, getattr(outcome, "error", None), journal, rss, spent)


def outcome_of(message: Done) -> Outcome | None:
    """Read what a run came to."""
    if not message.kind:
        return None
    values: dict[str, Any] = dict(zip(_FIELDS[message.kind], message.values, strict=True))
    if message.error is not None:
        values["error"] = message.error
    if "cause" in values:
        values["cause"] = AbandonCause(values["cause"])
    return _KINDS[message.kind](**values)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────


class ChildEnd(Link[FromSlot]):
    """The child's end, which lives on its loop."""

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[FromSlot], None],
        on_close: Callable[[], None],
    ) -> None:
        super().__init__(sock, _FROM_SLOT, on_message, on_close)
        self.unread = False
        """The other end has closed, and did not read all that it was sent."""

    def post(self, message: Message) -> bool:
        """Say one message at once; True when the system has taken all of it."""
        self._said.append(message)
        return self.flush()

    def read(self) -> None:
        """Take in what has arrived, without waiting."""
        while not self._closed:
            try:
                chunk = self._sock.recv(1 << 16)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self.unread = isinstance(error, ConnectionResetError)
                chunk = b""
            if not chunk:
                self.close()
                self._on_close()
                return
            self._received += chunk
            for message in self._frames():
                self._on_message(message)


_FROM_SLOT = msgspec.msgpack.Decoder(list[FromSlot])


class SlotEnd:
    """The slot process's end: it waits, because there is nothing else to do."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[FromChild])
        self._received = bytearray()
        self._messages: list[FromChild] = []

    def next(self) -> FromChild | None:
        """Wait for a message; None: the child has hung up."""
        while not self._messages:
            if not self._receive(0):
                return None
        return self._messages.pop(0)

    def halt(self) -> Halt | None:
        """Return the next message if it is a halt and has arrived, without waiting."""
        try:
            while not self._messages and self._receive(socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass
        if self._messages and isinstance(self._messages[0], Halt):
            return self._messages.pop(0)  # pyright: ignore[reportReturnType]
        return None

    def encode(self, message: Message) -> bytes:
        """Write a frame; raises for what is no data."""
        body = self._encoder.encode((message,))
        return len(body).to_bytes(HEAD, "big") + body

    def send(self, frame: bytes) -> None:
        """Send a frame to its end."""
        self.sock.sendall(frame)

    def _receive(self, flags: int) -> bool:
        try:
            chunk = self.sock.recv(1 << 16, flags)
        except ConnectionResetError:
            return False
        received = self._received
        received += chunk
        while len(received) >= HEAD:
            end = HEAD + int.from_bytes(received[:HEAD], "big")
            if len(received) < end:
                break
            self._messages += self._decoder.decode(received[HEAD:end])
            del received[:end]
        return bool(chunk)
