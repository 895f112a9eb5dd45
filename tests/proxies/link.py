"""A way to a server that breaks on demand: answers get lost, nothing moves, nobody answers."""

import asyncio
from types import TracebackType
from typing import Self

from tests.proxies.background import Background
from tests.proxies.conversation import Conversation
from tests.proxies.door import HOST, Door
from tests.proxies.scissors import Cut, Scissors, Wanted
from tests.proxies.wires import MakeWire, PlainWire

_HANGS = "the link hangs"


class Link:
    """Listens on a port of this machine and carries every connection to ``target``.

    What is asked of it has happened when the call returns. Answers can be cut only if a wire says
    where they end: ``Link(target, wire=PostgresWire)``.
    """

    def __init__(self, target: tuple[str, int], *, wire: MakeWire = PlainWire) -> None:
        self.target = target
        """Where new connections go; may be changed at any time."""
        self._wire = wire
        self._background = Background("link")
        self._door: Door | None = None
        self._scissors = Scissors()
        self._conversations: set[Conversation] = set()
        self._meetings: set[asyncio.Task[None]] = set()
        self._waiting: list[Conversation] = []
        self._hangs = False
        self.accepted = 0
        """Connections so far."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def host(self) -> str:
        return HOST

    @property
    def port(self) -> int:
        """The port; the same from start to stop, also while connections are refused."""
        if self._door is None:
            raise RuntimeError("the link has no port yet: call start() first")
        return self._door.port

    @property
    def cuts(self) -> list[Cut]:
        """The answers that were lost so far, the oldest first."""
        return list(self._scissors.cuts)

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._conversations)

    def start(self) -> None:
        """Listen."""
        self._background.start()
        self._door = Door()
        self._background.run(self._door.open(self._visitor))

    def stop(self) -> None:
        """Close everything."""
        door, self._door = self._door, None
        if door is not None:
            self._background.call(door.give_up)
            self._background.call(self._end_all)
            self._background.stop()

    def cut_replies(
        self,
        count: int | None = None,
        *,
        chance: float = 1.0,
        seed: int | None = None,
        when: Wanted | None = None,
    ) -> None:
        """Lose the next ``count`` answers, or each with this ``chance`` until `heal`.

        The server has carried out the request and answered; nothing of the answer reaches the
        client, and both connections are closed. ``when`` chooses by the bytes of the request. An
        answer that tells of an error, or of an open transaction, is never lost.
        """
        if self._wire is PlainWire:
            raise RuntimeError("the link cannot see answers: give it a wire, Link(…, wire=…)")
        self._background.call(lambda: self._scissors.take_up(count, chance, seed, when))

    def cut_all(self) -> None:
        """Close all connections now; new ones are welcome."""
        self._background.call(self._end_all)

    def hang(self) -> None:
        """Accept connections, but let nothing through, either way, until `heal`."""
        self._background.call(self._hang)

    def refuse(self) -> None:
        """Close all connections and refuse new ones until `heal`."""

        def shut() -> None:
            self._open_door().shut()
            self._end_all()

        self._background.call(shut)

    def heal(self, *, close: bool = False) -> None:
        """End every trouble. What hung goes on where it was, or is closed with ``close``."""
        self._background.run(self._heal(close=close))

    def _visitor(self) -> asyncio.BaseProtocol:
        return Conversation(
            self._wire(), self._scissors, self._came, self._conversations.discard
        ).client

    def _came(self, conversation: Conversation) -> None:
        self.accepted += 1
        self._conversations.add(conversation)
        if self._hangs:
            self._waiting.append(conversation)
        else:
            self._meet(conversation)

    def _meet(self, conversation: Conversation) -> None:
        meeting = asyncio.get_running_loop().create_task(conversation.meet(*self.target))
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)

    def _end_all(self) -> None:
        self._waiting.clear()
        for conversation in list(self._conversations):
            conversation.end()

    def _hang(self) -> None:
        self._hangs = True
        for conversation in self._conversations:
            conversation.client.hold(_HANGS)
            conversation.server.hold(_HANGS)

    async def _heal(self, *, close: bool) -> None:
        self._scissors.put_down()
        if self._hangs:
            self._hangs = False
            if close:
                self._end_all()
            for conversation in self._conversations:
                conversation.client.free(_HANGS)
                conversation.server.free(_HANGS)
            waiting, self._waiting = self._waiting, []
            for conversation in waiting:
                self._meet(conversation)
        await self._open_door().open(self._visitor)

    def _open_door(self) -> Door:
        if self._door is None:
            raise RuntimeError("the link was stopped: call start() first")
        return self._door
