"""Changes, told to whoever listens: each topic is looked at once, however many listen to it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.counts import counted
from lamplighter.model.errors import LamplighterError, StoreError, StoreUnreachable
from lamplighter.model.names import shown
from lamplighter.server import event_stream
from lamplighter.server.errors import NoMoreListeners, TooManyListeners
from lamplighter.server.problem import problem_of
from lamplighter.server.pulse import Probe, Pulse
from lamplighter.server.route import Stream
from lamplighter.server.shapes import Health

log = logging.getLogger("lamplighter.server")

SLOWEST = 5.0
"""A topic that does not change is looked at so many times more rarely, at most."""
THRIFT = 100.0
"""After a look, there is none for so many times the time that it took: a long one is a burden."""
LONGEST_REST = 60.0
LOOKS = 100.0
"""So many looks there are per second at most, at an interval of one second."""
HEARTBEAT = 5.0
"""Seconds after which a silent stream gives a sign of life."""
RECHECK = 15.0
"""Seconds after which a listener is asked for again."""

_SLOWER = 1.5

Look = Callable[[], Awaitable[object]]
"""Reads what a topic is about, in the shape of the route that shows it."""
Check = Callable[[], Awaitable[None]]
"""Raises when a listener may not listen any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Something to listen to, as those of one tenant see it."""

    name: str
    tenant: str | None
    steady: bool = False
    """It is looked at as often as ever, though it does not change."""


_STORE = Topic(name=event_stream.STORE, tenant=None)


@dataclass(frozen=True, slots=True)
class State:
    """What there is to tell about a topic."""

    name: str
    data: bytes
    mark: str


class Hub:
    """All listeners of a process, and what they listen to.

    With a ``probe`` they are also told when the store stops answering, and when it answers again.
    """

    def __init__(self, settings: Settings, probe: Probe | None = None) -> None:
        self.interval = settings.http_events_interval
        self._most = settings.http_events_listeners
        self._each = settings.http_events_each
        self._watches: dict[Topic, Watch] = {}
        self._listeners: dict[Listener, str] = {}
        self._by_caller: Counter[str] = Counter()
        self._closed = False
        self._pulse = Pulse(probe, self._tell_of_the_store)

    @property
    def crowd(self) -> float:
        """How many times longer to wait between two looks, because there are many topics."""
        return max(1.0, len(self._watches) / LOOKS)

    async def listen(
        self, caller: str, looks: Mapping[Topic, Look], *, had: str, check: Check
    ) -> Listener:
        """Begin to listen. Raises what keeps a topic from being looked at."""
        if self._pulse.away:
            # What was seen before is not what is there now.
            raise StoreUnreachable(
                "the store does not answer at present", hint="come back later", value=None
            )
        listener = self._enter(caller, list(looks), had, check)
        try:
            for topic, look in looks.items():
                watch = self._watches.setdefault(topic, Watch(self, topic))
                await watch.join(listener, look)
        except BaseException:
            listener.close()
            raise
        return listener

    def _enter(self, caller: str, topics: Sequence[Topic], had: str, check: Check) -> Listener:
        if self._closed or len(self._listeners) >= self._most:
            raise NoMoreListeners(
                f"there are {len(self._listeners)} listeners already, or the service is ending",
                hint="come back later; the setting `http_events_listeners` has the limit",
                value=self._most,
                headers={"Retry-After": "5"},
            )
        if self._by_caller[caller] >= self._each:
            raise TooManyListeners(
                f"{shown(caller)} listens on {counted(self._each, 'connection')} already",
                hint="listen to several topics on one; the setting `http_events_each` is the limit",
                value=self._each,
                headers={"Retry-After": "5"},
            )
        listener = Listener(self, topics, had, check)
        self._listeners[listener] = caller
        self._by_caller[caller] += 1
        self._pulse.start()
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener, and what nobody listens to any more."""
        caller = self._listeners.pop(listener, None)
        if caller is None:
            return
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]
        for topic in listener.topics:
            watch = self._watches.get(topic)
            if watch is not None and watch.left(listener):
                del self._watches[topic]
        if not self._listeners:
            self._pulse.stop()

    def _tell_of_the_store(self) -> None:
        away = self._pulse.away
        state = _state(event_stream.STORE, Health(status="away" if away else "ok"))
        for listener in tuple(self._listeners):
            listener.tell(_STORE, state)
        if not away:
            for watch in self._watches.values():
                watch.hurry()

    def close(self) -> None:
        """Let all streams come to their end, and take no more listeners."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.end()


class Watch:
    """Looks at one topic again and again, for as long as somebody listens to it."""

    def __init__(self, hub: Hub, topic: Topic) -> None:
        self._hub = hub
        self._topic = topic
        self._listeners: set[Listener] = set()
        self._state: State | None = None
        self._looking = asyncio.Lock()
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def join(self, listener: Listener, look: Look) -> None:
        """Tell a listener what there is, and from now on what changes."""
        self._listeners.add(listener)
        async with self._looking:
            if self._state is None:
                self._state = _state(self._topic.name, await look())
        listener.tell(self._topic, self._state)
        if self._task is None:
            self._task = runtime.spawn(self._run(look), name=f"events {self._topic.name}")
        else:
            # What is known may be a few seconds old.
            self.hurry()

    def hurry(self) -> None:
        """Look again now."""
        self._joined.set()

    def left(self, listener: Listener) -> bool:
        """Forget a listener; tells whether it was the last."""
        self._listeners.discard(listener)
        if self._listeners:
            return False
        if self._task is not None:
            self._task.cancel()
        return True

    async def _run(self, look: Look) -> None:
        slower, took = 1.0, 0.0
        while True:
            pause = self._hub.interval * self._hub.crowd * slower
            if await self._joins_within(pause if self._topic.steady else rest(pause, took)):
                slower = 1.0
            began = runtime.monotonic()
            before, state = self._state, await self._look(look)
            # How long a store that is away kept us waiting says nothing about the next look.
            took = 0.0 if state is None else runtime.monotonic() - began
            if state is None or (before is not None and state.mark == before.mark):
                slower = 1.0 if self._topic.steady else slowed(slower)
                continue
            slower = 1.0
            self._state = state
            for listener in tuple(self._listeners):
                listener.tell(self._topic, state)

    async def _look(self, look: Look) -> State | None:
        """Look once; None: nothing can be said at present."""
        try:
            async with self._looking:
                return _state(self._topic.name, await look())
        except StoreError as error:
            log.warning("cannot look at %s: %s", shown(self._topic.name), error.cause)
        except LamplighterError as error:
            return _state(event_stream.PROBLEM, problem_of(error))
        except Exception:
            log.exception("cannot look at %s", shown(self._topic.name))
        return None

    async def _joins_within(self, seconds: float) -> bool:
        self._joined.clear()
        try:
            async with asyncio.timeout(seconds):
                return await self._joined.wait()
        except TimeoutError:
            return False


class Listener(Stream):
    """One stream of changes. Whoever reads slowly gets the newest of each topic, not all."""

    def __init__(self, hub: Hub, topics: Sequence[Topic], had: str, check: Check) -> None:
        self.topics = topics
        self._hub = hub
        self._names = [topic.name for topic in topics]
        self._marks = event_stream.read(had, self._names)
        """Which content of each topic was sent last."""
        self._news: dict[str, State] = {}
        self._check = check
        self._checked_at = runtime.monotonic()
        self._wake = asyncio.Event()
        self._ended = False

    def tell(self, topic: Topic, state: State) -> None:
        """Take in what is to be sent next about a topic."""
        if self._marks.get(topic.name) == state.mark:
            self._news.pop(topic.name, None)
        else:
            self._news[topic.name] = state
            self._wake.set()

    def end(self) -> None:
        """Come to an end with what is being sent."""
        self._ended = True
        self._wake.set()

    def close(self) -> None:
        """Be told nothing any more."""
        self._hub.leave(self)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what changes, and heartbeats."""
        yield event_stream.RETRY
        while not self._ended:
            while self._news:
                yield self._next()
            quiet = not await self._woken_within(HEARTBEAT)
            try:
                await self._check_now_and_then()
            except LamplighterError as error:
                yield self._event(_state(event_stream.PROBLEM, problem_of(error)))
                return
            if quiet:
                yield event_stream.HEARTBEAT

    def _next(self) -> bytes:
        name = next(iter(self._news))
        state = self._news.pop(name)
        self._marks[name] = state.mark
        return self._event(state)

    def _event(self, state: State) -> bytes:
        place = event_stream.written(self._names, self._marks)
        return event_stream.event(state.name, state.data, place)

    async def _woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _check_now_and_then(self) -> None:
        now = runtime.monotonic()
        if now - self._checked_at >= RECHECK:
            self._checked_at = now
            await self._check()


def slowed(slower: float) -> float:
    """Say how many times longer to wait, after one more look at which nothing had changed."""
    return min(slower * _SLOWER, SLOWEST)


def rest(pause: float, took: float) -> float:
    """Say how long to wait after a look that took so long."""
    return max(pause, min(took * THRIFT, LONGEST_REST))


def _state(name: str, body: object) -> State:
    return State(name, msgspec.json.encode(body), event_stream.mark_of(body))
