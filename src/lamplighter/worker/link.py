"""The line between a supervisor and a child: typed messages in length-prefixed frames.

A frame holds all messages that were said since the last one, so that a whole batch of jobs costs
one system call. Jobs travel as small numbers, the child's own count of its claims: shorter than
ids, and never ambiguous when the same job is claimed again while its old handler still runs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

_HEAD = 4
_CHUNK = 1 << 18
_BUFFER = 1 << 20


class Message(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """Anything said over the line."""


# ── the child says ───────────────────────────────────────────────────────────────────────────


class Hello(Message, frozen=True):
    """I am ready: this is what I can run. I claim nothing before I have heard `Kept`."""

    pid: int
    queues: tuple[str, ...]
    types: tuple[dict[str, Any], ...]
    """Fields of a TypeInfo each."""
    retries: dict[str, str]
    """Retry policy per type as JSON, for settlements the supervisor has to decide."""


class Broken(Message, frozen=True):
    """I cannot start, and why."""

    code: str
    cause: str
    hint: str


class Claimed(Message, frozen=True):
    """I hold these jobs; they are numbered from ``first`` on."""

    nonce: str
    first: int
    asked_at: float
    """When the claim was made: the lease is counted from here."""
    jobs: list[tuple[str, int, str]]
    """Id, lease number and type of each."""


class Started(Message, frozen=True):
    """I am about to run these; each with the instant at which I must be killed for it.

    Said again of a run whose time begins anew, because its process had to start first.
    """

    runs: list[tuple[int, float]]
    at: float
    """When their time began, by the clock that all processes of a machine share."""


class Extended(Message, frozen=True):
    """These have come further: each may go on until another instant."""

    runs: list[tuple[int, float]]


class Convicted(Message, frozen=True):
    """A job of this type has killed a process in which it ran alone."""

    job_type: str
    how: str


class Hurt(Message, frozen=True):
    """A handler has changed what all share: replace me when what I run has ended."""

    types: tuple[str, ...]
    """Types one of which has done it, as far as can be told."""
    how: str


class Ended(Message, frozen=True):
    """These handlers are done, but not written yet: keep the lease, forget the hard end."""

    numbers: list[int]


class Finished(Message, frozen=True):
    """I have nothing more to do with these."""

    numbers: list[int]


class Forsaken(Message, frozen=True):
    """I ran these but cannot write what they came to: keep their leases no longer."""

    numbers: list[int]


class Unkept(Message, frozen=True):
    """I have not heard for too long that these are kept: I stop them, and forsake them then."""

    numbers: list[int]


class Tick(Message, frozen=True):
    """My loop turns."""

    running: int


class Counted(Message, frozen=True):
    """What I did since I last said so: see `counting`."""

    lags: dict[str, tuple[list[int], float]]
    """Starts by queue, sorted by how late they were, and the sum of that in seconds."""
    runs: dict[str, tuple[list[int], float]]
    """Runs by type, sorted by how long they took, and the sum of that in seconds."""
    ends: list[tuple[str, str, int]]
    """Type, what it came to, how often."""
    stale: int
    """Settlements that were refused."""
    calls: dict[str, tuple[list[int], float]]
    """Calls of the store by verb, sorted by how long they took, and the sum of that."""
    errors: dict[str, int]
    """Calls of the store by verb that failed."""
    dropped: int = 0
    """Lines of output that were dropped."""


class Resync(Message, frozen=True):
    """My loop stood still. Which of these are still mine?"""

    numbers: list[int]


class AskCancels(Message, frozen=True):
    """Somebody has requested a cancel: look whether it is for one of mine."""


class Told(Message, frozen=True):
    """Something worth telling happened."""

    name: str
    fields: dict[str, Any]


FromChild = (
    Hello
    | Broken
    | Claimed
    | Started
    | Extended
    | Ended
    | Finished
    | Forsaken
    | Unkept
    | Tick
    | Counted
    | Resync
    | AskCancels
    | Told
    | Convicted
    | Hurt
)

# ── the supervisor says ──────────────────────────────────────────────────────────────────────


class Begin(Message, frozen=True):
    """Be this worker."""

    worker: str
    spec: str
    settings: dict[str, Any]
    slots: int
    queues: tuple[str, ...]
    weights: tuple[int, ...] | None
    path: list[str]
    events: bool
    alone: bool
    """Run jobs alone, each in a process of its own, and none here."""


class Cancel(Message, frozen=True):
    """A cancel was requested for these: stop their handlers."""

    numbers: list[int]


class Slot(Message, frozen=True):
    """Workers that know these versions hold this slot: see `model.versions`; 0: none."""

    slot: int
    hashes: dict[str, str]
    """Of each type: a child that was started before a reload may know others."""


class Lost(Message, frozen=True):
    """These are not yours any more: stop their handlers and write nothing."""

    numbers: list[int]


class Kept(Message, frozen=True):
    """All your leases were claimed or renewed at this instant or later. Said again and again:
    when it is not, nobody keeps them. The first one answers a hello, after all that a child has
    to know before it claims.
    """

    since: float


class Yours(Message, frozen=True):
    """Answer to a resync: exactly these are still yours."""

    numbers: list[int]


class Drain(Message, frozen=True):
    """Take nothing new, give back what has not started, and be done within ``grace`` seconds."""

    grace: float


class Isolate(Message, frozen=True):
    """Run jobs of these types alone for so many seconds: one of them has killed its process."""

    types: dict[str, float]


class MakeWay(Message, frozen=True):
    """For so many seconds take few jobs at a time: very many schedules are being fired."""

    seconds: float


FromSupervisor = Begin | Cancel | Lost | Kept | Yours | Drain | Isolate | MakeWay | Slot

Incoming = TypeVar("Incoming")


class Link(Generic[Incoming]):
    """One end of the line. ``say`` queues, ``flush`` writes; nothing ever blocks the loop."""

    def __init__(
        self,
        sock: socket.socket,
        decoder: msgspec.msgpack.Decoder[list[Incoming]],
        on_message: Callable[[Incoming], None],
        on_close: Callable[[], None],
    ) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self._sock = sock
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder(enc_hook=str)
        self._on_message = on_message
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._said: list[Message] = []
        self._flush_soon = False
        self._unsent = b""
        self._received = bytearray()
        self._closed = False
        self._writable: list[asyncio.Future[None]] = []
        self._loop.add_reader(sock, self.read)

    @property
    def congested(self) -> bool:
        """True while the other end has not taken what was written."""
        return bool(self._unsent)

    def say(self, message: Message) -> None:
        """Queue a message; it goes out with the next flush, at the latest in the next turn."""
        self._said.append(message)
        if not self._flush_soon:
            self._flush_soon = True
            self._loop.call_soon(self.flush)

    def flush(self) -> bool:
        """Write what was said; True when the system has taken all of it."""
        self._flush_soon = False
        if self._closed:
            return False
        if self._said:
            body = self._encoder.encode(self._said)
            self._said.clear()
            self._unsent += len(body).to_bytes(_HEAD, "big") + body
        return self._write()

    async def drained(self) -> None:
        """Wait until the system has taken everything."""
        while self._unsent and not self._closed:
            waiter = self._loop.create_future()
            self._writable.append(waiter)
            await waiter

    def read(self) -> None:
        """Take in what has arrived, without waiting."""
        while not self._closed:
            try:
                chunk = self._sock.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                self._on_close()
                return
            self._received += chunk
            for message in self._frames():
                self._on_message(message)

    def close(self) -> None:
        """Hang up."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        self._release()

    def _frames(self) -> Iterable[Incoming]:
        received, start = self._received, 0
        messages: list[Incoming] = []
        while len(received) - start >= _HEAD:
            end = start + _HEAD + int.from_bytes(received[start : start + _HEAD], "big")
            if len(received) < end:
                break
            messages += self._decoder.decode(received[start + _HEAD : end])
            start = end
        del received[:start]
        return messages

    def _write(self) -> bool:
        while self._unsent:
            try:
                sent = self._sock.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._sock, self._write_more)
                return False
            except OSError:
                # The other end is gone; reading tells it to who has to know.
                self._unsent = b""
                return False
            self._unsent = self._unsent[sent:]
        return True

    def _write_more(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sock)
            self._release()

    def _release(self) -> None:
        for waiter in self._writable:
            if not waiter.done():
                waiter.set_result(None)
        self._writable.clear()


def child_end(
    sock: socket.socket,
    on_message: Callable[[FromSupervisor], None],
    on_close: Callable[[], None],
) -> Link[FromSupervisor]:
    """Make the child's end."""
    decoder = msgspec.msgpack.Decoder(list[FromSupervisor])
    return Link(sock, decoder, on_message, on_close)


def supervisor_end(
    sock: socket.socket,
    on_message: Callable[[FromChild], None],
    on_close: Callable[[], None],
) -> Link[FromChild]:
    """Make the supervisor's end."""
    decoder = msgspec.msgpack.Decoder(list[FromChild])
    return Link(sock, decoder, on_message, on_close)
