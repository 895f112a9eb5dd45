"""Changes are told to whoever listens, each in the shape in which it is shown."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.ids import compose
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.values import Recording
from lamplighter.server import event_stream, events, pulse, tokens
from lamplighter.server.application import application
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.events import Hub, State, Topic
from tests.unit.server.test_tokens import issue, revoke

PATIENCE = 20.0
SOON = {"http_events_interval": 0.05}


@dataclass
class Event:
    name: str
    id: str
    data: Any


@dataclass
class Listening:
    """A listener, and what it has been sent. It reads until told to stop, or to go away."""

    asgi: Any
    topics: list[str]
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "GET"

    async def __aenter__(self) -> Self:
        self.status = 0
        self.sent_headers: dict[str, str] = {}
        self.text = ""
        self.ended = False
        self._news, self._gone = asyncio.Event(), asyncio.Event()
        query = "&".join(f"topic={topic}" for topic in self.topics)
        given = {"host": "127.0.0.1:8080", **self.headers}
        scope = {
            "type": "http",
            "method": self.method,
            "path": "/v1/events",
            "raw_path": b"/v1/events",
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        }
        self._task = asyncio.ensure_future(self._run(scope))
        await self.until(lambda: self.status)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.go()
        await asyncio.wait_for(self._task, PATIENCE)

    def go(self) -> None:
        self._gone.set()

    async def until(self, condition) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                assert not self.ended, f"ended with {self.status}: {self.text}"
                self._news.clear()
                await self._news.wait()

    async def events(self, count: int) -> list[Event]:
        await self.until(lambda: len(self.told) >= count)
        return self.told

    @property
    def told(self) -> list[Event]:
        found = []
        for block in self.text.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "event" in fields:
                found.append(Event(fields["event"], fields["id"], json.loads(fields["data"])))
        return found

    @property
    def code(self) -> str:
        return json.loads(self.text)["code"]

    async def _run(self, scope: dict[str, Any]) -> None:
        async def receive() -> dict[str, Any]:
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.sent_headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                self.text += message["body"].decode()
            self._news.set()

        await self.asgi(scope, receive, send)
        self.ended = True
        self._news.set()


@pytest.fixture
async def busy(make):
    """A service that looks often, whose workers know how to charge."""
    made = make(**SOON)
    await made.publish("charge")
    return made


@pytest.fixture
def listen(busy):
    asgi = application(busy.service)

    def begin(*topics: str, **more: Any) -> Listening:
        return Listening(asgi, list(topics), **more)

    return begin


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("workers", "/v1/workers"),
        ("queues", "/v1/queues"),
        ("dlq", "/v1/dlq"),
        ("schedules", "/v1/schedules"),
        ("job:{id}", "/v1/jobs/{id}"),
    ],
)
async def test_what_there_is_is_told_at_once_as_it_is_shown(busy, listen, topic, path):
    await busy.put("nightly")
    job_id = await busy.submit(delay=60)
    async with listen(topic.format(id=job_id)) as listening:
        (told,) = await listening.events(1)
    assert listening.status == 200
    assert listening.sent_headers["content-type"] == "text/event-stream; charset=utf-8"
    assert listening.sent_headers["cache-control"] == "no-store"
    assert listening.text.startswith("retry: ")
    assert told.name == topic.format(id=job_id)
    assert told.data == (await busy.call("GET", path.format(id=job_id))).json


async def test_a_change_is_told_and_nothing_else(busy, listen):
    job_id = await busy.submit(delay=60)
    async with listen(f"job:{job_id}") as listening:
        await listening.events(1)
        await busy.call("DELETE", f"/v1/jobs/{job_id}")
        first, second = await listening.events(2)
    assert (first.data["status"], second.data["status"]) == ("scheduled", "cancelled")
    assert first.id != second.id


async def test_progress_is_told(busy, listen):
    job_id = await busy.submit()
    claim = await busy.claim()
    engine = await busy.engine()
    async with listen(f"job:{job_id}") as listening:
        await listening.events(1)
        for done in (1, 2):
            journal = Journal(progress=Progress(done=done, total=2, note="charging"))
            await engine.jobs.record([Recording(job_id, claim.fence, journal)])
            await listening.events(1 + done)
    assert [event.data["progress"] for event in listening.told] == [
        None,
        {"done": 1, "total": 2, "note": "charging"},
        {"done": 2, "total": 2, "note": "charging"},
    ]


async def test_several_topics_come_on_one_connection(busy, listen):
    job_id = await busy.submit(delay=60)
    async with listen("workers", f"job:{job_id}", "queues", "workers") as listening:
        told = await listening.events(3)
        await busy.call("DELETE", f"/v1/jobs/{job_id}")
        await listening.until(
            lambda: any(each.data.get("status") == "cancelled" for each in listening.told)
        )
    assert {each.name for each in told} == {"workers", f"job:{job_id}", "queues"}
    assert told[-1].id.count(".") == 2


async def test_who_comes_back_is_not_sent_what_it_has(busy, listen):
    job_id = await busy.submit(delay=60)
    async with listen("workers", f"job:{job_id}") as listening:
        last = (await listening.events(2))[-1].id
    async with listen("workers", f"job:{job_id}", headers={"last-event-id": last}) as again:
        await again.until(lambda: again.text)
        await busy.call("DELETE", f"/v1/jobs/{job_id}")
        (only,) = await again.events(1)
    assert (only.name, only.data["status"]) == (f"job:{job_id}", "cancelled")
    assert only.id.split(".")[0] == last.split(".")[0]


@pytest.mark.parametrize("place", ["", "x", "-.-.-", "0" * 16, "\x00", "é" * 40])
async def test_a_place_that_is_none_is_as_good_as_no_place(listen, place):
    async with listen("workers", "queues", headers={"last-event-id": place}) as listening:
        assert len(await listening.events(2)) == 2


@pytest.mark.parametrize(
    ("topics", "status", "code"),
    [
        ([], 400, "invalid-query"),
        (["weather"], 400, "invalid-query"),
        (["job"], 400, "invalid-query"),
        (["workers:1"], 400, "invalid-query"),
        (["workers"] * 11, 400, "invalid-query"),
        (["job:nonsense"], 404, "unknown-job"),
        (["workers", f"job:{compose(1, 0, 1)}"], 404, "unknown-job"),
    ],
)
async def test_what_cannot_be_listened_to_is_refused(busy, listen, topics, status, code):
    async with listen(*topics) as listening:
        await listening.until(lambda: listening.ended)
    assert (listening.status, listening.code) == (status, code)
    assert not busy.service.events._listeners
    assert not busy.service.events._watches


async def test_jobs_of_other_tenants_do_not_exist(busy, listen):
    own = await busy.submit(tenant="a", delay=60)
    other = await busy.submit(tenant="b", delay=60)
    busy.become(Principal(name="a", tenant="a"))
    async with listen(f"job:{own}") as listening:
        await listening.events(1)
        async with listen(f"job:{other}") as refused:
            await refused.until(lambda: refused.ended)
    assert listening.told[0].data["tenant"] == "a"
    assert (refused.status, refused.code) == (404, "unknown-job")


async def test_a_tenants_own_look_is_shared_with_nobody_else(busy, listen):
    """Whoever sees all tenants looks at the same job; that must not open it to others."""
    other = await busy.submit(tenant="b", delay=60)
    async with listen(f"job:{other}") as operator:
        await operator.events(1)
        busy.become(Principal(name="a", tenant="a"))
        async with listen(f"job:{other}") as refused:
            await refused.until(lambda: refused.ended)
    assert refused.status == 404


@pytest.mark.parametrize("topic", ["workers", "queues", "dlq", "schedules"])
async def test_what_is_about_all_is_not_for_one_tenant(busy, listen, topic):
    busy.become(Principal(name="a", tenant="a"))
    async with listen(topic) as refused:
        await refused.until(lambda: refused.ended)
    assert (refused.status, refused.code) == (403, "forbidden")


@pytest.mark.parametrize("topic", ["workers", "queues", "dlq"])
async def test_a_topic_needs_the_scope_of_the_route_that_shows_it(busy, listen, topic):
    few = Principal(name="a", scopes=frozenset({Scope.JOBS_READ}))
    busy.become(few)
    async with listen(topic) as refused:
        await refused.until(lambda: refused.ended)
    assert (refused.status, refused.code) == (403, "forbidden")


async def test_all_who_listen_share_one_look(busy, listen):
    hub = busy.service.events
    async with listen("workers") as first, listen("workers", "queues") as second:
        await first.events(1)
        await second.events(2)
        assert {topic.name for topic in hub._watches} == {"workers", "queues"}
        await busy.publish("charge", "refund")
        assert "refund" in (await first.events(2))[1].data["workers"][0]["types"]
        await second.events(3)
    assert not hub._watches
    assert not hub._listeners
    assert not hub._by_caller


async def test_there_are_bounds_and_who_leaves_makes_room(make):
    scene = make(http_events_each=2, http_events_listeners=3, **SOON)
    asgi = application(scene.service)
    async with Listening(asgi, ["workers"]), Listening(asgi, ["workers"]) as second:
        async with Listening(asgi, ["workers"]) as refused:
            await refused.until(lambda: refused.ended)
        assert (refused.status, refused.code) == (429, "too-many-listeners")
        assert refused.sent_headers["retry-after"] == "5"
        scene.become(Principal(name="another"))
        async with Listening(asgi, ["workers"]) as third:
            async with Listening(asgi, ["workers"]) as full:
                await full.until(lambda: full.ended)
            assert (full.status, full.code) == (503, "no-more-listeners")
            second.go()
            await second.until(lambda: second.ended)
            async with Listening(asgi, ["workers"]) as welcome:
                assert welcome.status == 200
        assert third.status == 200


async def test_a_stream_is_not_cut_when_requests_are(make):
    longest = 2.0  # within which also a busy machine looks once
    scene = make(http_timeout=longest, **SOON)
    await scene.publish("charge")
    job_id = await scene.submit(delay=60)
    async with Listening(application(scene.service), [f"job:{job_id}"]) as listening:
        await listening.events(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.25 * longest):
                await listening.events(2)
        assert not listening.ended
        await scene.call("DELETE", f"/v1/jobs/{job_id}")
        await listening.events(2)


async def test_only_the_head_is_sent_to_who_asks_for_it(busy, listen):
    async with listen("workers", method="HEAD") as listening:
        await listening.until(lambda: listening.ended)
    assert (listening.status, listening.text) == (200, "")
    assert not busy.service.events._listeners


async def test_a_quiet_stream_gives_signs_of_life(monkeypatch, listen):
    assert events.HEARTBEAT <= 5  # the console waits for two of them, and then says so
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    async with listen("queues") as listening:
        await listening.until(lambda: listening.text.count(":\n\n") >= 2)
        assert len(listening.told) == 1


@pytest.mark.parametrize(
    ("end", "code"), [("revoked", "invalid-token"), ("expired", "token-expired")]
)
async def test_a_token_that_is_not_good_any_more_ends_its_streams(monkeypatch, make, end, code):
    """Looked at every 15 seconds, and remembered for 30: it takes less than a minute."""
    assert events.HEARTBEAT + events.RECHECK + tokens.FRESH < 60
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    monkeypatch.setattr(events, "RECHECK", 0.05)
    monkeypatch.setattr(tokens, "FRESH", 0.05)
    scene = make(tokens=True, **SOON)
    lasts = {"lifetime_ms": 2_000} if end == "expired" else {}
    token = await issue(scene, "operator", **lasts)
    headers = {"authorization": f"Bearer {token}"}
    async with Listening(application(scene.service), ["queues"], headers) as listening:
        await listening.events(1)
        if end == "revoked":
            await revoke(scene, token)
        await listening.until(lambda: listening.ended)
    assert listening.told[-1].name == "problem"
    assert listening.told[-1].data["code"] == code
    assert not scene.service.events._listeners


async def test_who_loses_a_scope_is_cut_off_too(monkeypatch, busy, listen):
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    monkeypatch.setattr(events, "RECHECK", 0.05)
    async with listen("queues") as listening:
        await listening.events(1)
        few = Principal(name="a", scopes=frozenset({Scope.JOBS_READ}))
        busy.become(few)
        await listening.until(lambda: listening.ended)
    assert listening.told[-1].data["code"] == "forbidden"


async def test_who_is_for_another_tenant_now_is_cut_off(monkeypatch, busy, listen):
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    monkeypatch.setattr(events, "RECHECK", 0.05)
    job_id = await busy.submit(tenant="a", delay=60)
    busy.become(Principal(name="a", tenant="a"))
    async with listen(f"job:{job_id}") as listening:
        await listening.events(1)
        busy.become(Principal(name="a", tenant="b"))
        await listening.until(lambda: listening.ended)
    assert listening.told[-1].data["code"] == "forbidden"


async def test_a_job_that_is_removed_is_told_as_a_problem(busy, listen):
    job_id = await busy.submit()
    await busy.fail(await busy.claim())
    async with listen(f"job:{job_id}", "queues") as listening:
        await listening.events(2)
        await busy.call("POST", "/v1/dlq:purge", send={"all": True})
        await listening.until(lambda: any(each.name == "problem" for each in listening.told))
        assert not listening.ended
    (problem,) = [each.data for each in listening.told if each.name == "problem"]
    assert (problem["code"], problem["value"]) == ("unknown-job", job_id)


async def test_at_the_end_of_the_service_streams_come_to_theirs(busy, listen):
    async with listen("queues") as listening:
        await listening.events(1)
        busy.service.events.close()
        await listening.until(lambda: listening.ended)
        async with listen("queues") as late:
            await late.until(lambda: late.ended)
    assert late.status == 503


# ── the parts ────────────────────────────────────────────────────────────────────────────────


async def nothing() -> None:
    pass


async def test_a_store_that_is_away_for_a_while_ends_no_stream(make):
    hub, answers = (
        Hub(make(**SOON).service.settings),
        ["one", StoreUnreachable("x", hint="y"), "two"],
    )

    async def look() -> object:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {"say": answer}

    topic = Topic(name="weather", tenant=None)
    listener = await hub.listen("ada", {topic: look}, had="", check=nothing)
    chunks = listener.chunks()
    assert [await anext(chunks) for _ in range(3)][1:] == [
        event_stream.event("weather", b'{"say":"one"}', event_stream.mark_of({"say": "one"})),
        event_stream.event("weather", b'{"say":"two"}', event_stream.mark_of({"say": "two"})),
    ]
    listener.close()


@pytest.mark.parametrize("fault", ["refuses", "hangs"])
async def test_a_store_that_does_not_answer_is_told_and_so_is_its_return(
    busy, listen, monkeypatch, fault
):
    monkeypatch.setattr(pulse, "PATIENCE", 0.2)
    monkeypatch.setattr(pulse, "EVERY", 0.05)
    inspector = await busy.service.inspector()
    there = inspector.job

    async def gone(_: str) -> None:
        if fault == "hangs":
            await asyncio.Event().wait()
        raise StoreUnreachable("x", hint="y")

    async with listen("workers", "queues") as listening:
        await listening.events(2)
        monkeypatch.setattr(inspector, "job", gone)
        away = (await listening.events(3))[2]
        assert (away.name, away.data) == ("store", {"status": "away"})
        # What somebody else was told before is not told to others as if it were so now.
        async with listen("workers") as late:
            await late.until(lambda: late.ended)
        assert (late.status, late.code) == (503, "store-unreachable")
        assert listening.told[2:] == [away]
        monkeypatch.setattr(inspector, "job", there)
        back = (await listening.events(4))[3]
        assert (back.name, back.data) == ("store", {"status": "ok"})
        async with listen("workers") as welcome:
            await welcome.events(1)
        await busy.publish("charge", "refund")
        assert (await listening.events(5))[4].name == "workers"
    assert busy.service.events._pulse._task is None


async def test_a_look_that_failed_late_is_soon_followed_by_another(make, monkeypatch):
    now, pauses = [0.0], []
    hub, topic = Hub(make(**SOON).service.settings), Topic(name="weather", tenant=None)
    enough = asyncio.Event()

    def rest(pause: float, took: float) -> float:
        pauses.append(took)
        if len(pauses) == 3:
            enough.set()
        return pause

    monkeypatch.setattr(events, "rest", rest)
    answers = iter(["one"])

    async def look() -> object:
        try:
            return next(answers)
        except StopIteration:
            now[0] += 30.0
            raise StoreUnreachable("x", hint="y") from None

    monkeypatch.setattr(events.runtime, "monotonic", lambda: now[0])
    listener = await hub.listen("ada", {topic: look}, had="", check=nothing)
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    listener.close()
    assert pauses[:3] == [0.0, 0.0, 0.0]


async def test_who_reads_slowly_gets_the_newest_alone(make):
    hub, topic = Hub(make().service.settings), Topic(name="weather", tenant=None)

    async def look() -> object:
        return "sun"

    listener = await hub.listen("ada", {topic: look}, had="", check=nothing)
    chunks = listener.chunks()
    await anext(chunks)
    assert b"sun" in await anext(chunks)
    for weather in ("rain", "snow", "hail"):
        listener.tell(topic, State("weather", weather.encode(), weather))
    assert len(listener._news) == 1
    assert b"hail" in await anext(chunks)
    # Back to what it has: there is nothing to tell.
    listener.tell(topic, State("weather", b"fog", "fog"))
    listener.tell(topic, State("weather", b"hail", "hail"))
    assert not listener._news
    listener.close()


async def test_who_joins_late_is_told_what_is_known_without_another_look(make):
    hub, topic, looks = Hub(make().service.settings), Topic(name="weather", tenant=None), []

    async def look() -> object:
        looks.append(1)
        return "sun"

    first = await hub.listen("ada", {topic: look}, had="", check=nothing)
    second = await hub.listen("bob", {topic: look}, had="", check=nothing)
    assert len(looks) == 1
    assert first._news == second._news != {}
    first.close()
    second.close()


def test_what_does_not_change_is_looked_at_more_rarely():
    slower, steps = 1.0, []
    for _ in range(6):
        slower = events.slowed(slower)
        steps.append(slower)
    assert steps == sorted(steps)
    assert steps[-1] == events.SLOWEST


def test_what_takes_long_is_looked_at_more_rarely():
    assert events.rest(1.0, 0.001) == 1.0
    assert events.rest(1.0, 0.2) == 0.2 * events.THRIFT
    assert events.rest(1.0, 5.0) == events.LONGEST_REST


async def test_many_topics_are_looked_at_more_rarely(make):
    hub = Hub(make().service.settings)
    assert hub.crowd == 1.0
    hub._watches = dict.fromkeys(Topic(name=f"job:{n}", tenant=None) for n in range(250))
    assert hub.crowd == 2.5


def test_the_moment_of_a_look_is_no_change():
    assert event_stream.mark_of({"at": 1, "n": 2}) == event_stream.mark_of({"at": 9, "n": 2})
    assert event_stream.mark_of({"at": 1, "n": 2}) != event_stream.mark_of({"at": 1, "n": 3})


def test_a_place_is_read_as_it_was_written():
    topics, marks = ["a", "b", "c"], {"a": "0" * 16, "c": "f" * 16}
    place = event_stream.written(topics, marks)
    assert event_stream.read(place, topics) == marks
    assert event_stream.read(place, topics[:2]) == {}
