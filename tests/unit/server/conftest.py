"""A service on a store of its own, and callers that speak to it without a network."""

import dataclasses
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import pytest

from lamplighter import App, runtime
from lamplighter.model.job import ErrorInfo
from lamplighter.model.journal import Journal, Line, Piece, pack
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, NewWorker, Recording, TypeInfo
from lamplighter.server.application import application
from lamplighter.server.auth import Principal
from lamplighter.server.jwts import Jwts
from lamplighter.server.service import HttpService
from tests.unit.server.clocks import Clock

SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "cents": {"$ref": "#/$defs/Cents"},
        "card": {"type": "string", "maxLength": 4},
    },
    "required": ["order_id"],
    "additionalProperties": False,
    "$defs": {"Cents": {"type": "integer", "minimum": 0}},
}


@dataclasses.dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem, whose form is checked here once for all tests."""
        assert self.headers["content-type"] == "application/problem+json"
        problem = self.json
        assert problem["status"] == self.status
        assert problem["detail"]
        assert problem["hint"]
        assert "Traceback" not in self.body.decode()
        return problem["code"]


class Caller:
    """Sends requests to an ASGI application, as a server would."""

    def __init__(self, asgi: Any) -> None:
        self._asgi = asgi

    async def __call__(
        self,
        method: str,
        target: str,
        *,
        send: object = None,
        raw: bytes | None = None,
        chunks: list[bytes] | None = None,
        headers: dict[str, str | bytes] | None = None,
    ) -> Response:
        if send is not None:
            raw = json.dumps(send).encode()
        given = {"host": "127.0.0.1:8080", **(headers or {})}
        if raw is not None:
            given = {
                "content-type": "application/json",
                "content-length": str(len(raw)),
                **given,
            }
        path, _, query = target.partition("?")
        raw_path = quote(path, safe="/%:@!$&'()*+,;=")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (k.lower().encode(), v.encode() if isinstance(v, str) else v)
                for k, v in given.items()
            ],
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 4711),
        }
        waiting = list(chunks) if chunks is not None else [raw or b""]
        return await self._exchange(scope, waiting)

    async def _exchange(self, scope: dict[str, Any], waiting: list[bytes]) -> Response:
        self.unread = waiting
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not waiting:
                return {"type": "http.disconnect"}
            body = waiting.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(waiting)}

        async def answer(message: dict[str, Any]) -> None:
            told.append(message)

        await self._asgi(scope, receive, answer)
        headers = {k.decode(): v.decode() for k, v in told[0]["headers"]}
        return Response(told[0]["status"], headers, b"".join(m.get("body", b"") for m in told[1:]))


class Scene:
    """A service, its callers, and hands to move the jobs behind it."""

    def __init__(self, app: App, keys: list[str], **access: Any) -> None:
        self.app = app
        self.service = HttpService(app, keys, **access)
        self.call = Caller(application(self.service))

    def become(self, principal: Principal) -> None:
        """Let all callers be this one from now on."""

        async def known(*_: Any, **__: Any) -> Principal:
            return principal

        self.service.door.principal = known

    async def engine(self) -> Engine:
        return await self.app.engine()

    async def publish(self, *names: str, schema: object = SCHEMA, **options: Any) -> None:
        info = [
            TypeInfo(
                name=name, schema=json.dumps(schema), hash="h-1", queue="payments", options=options
            )
            for name in names
        ]
        worker = NewWorker(
            id="w-1", host="here", pid=1, queues=("payments",), slots=5, types=tuple(info)
        )
        await (await self.engine()).membership.join(worker)

    async def submit(self, **more: Any) -> str:
        body = {"type": "charge", "arguments": {"order_id": "o-1"}, **more}
        response = await self.call("POST", "/v1/jobs", send=body)
        assert response.status == 201, response.body
        return response.json["id"]

    async def put(self, schedule_id: str = "nightly", **more: Any) -> Response:
        """Put a schedule of a job that charges; every day unless ``more`` says otherwise."""
        when = {} if {"every", "rrule", "at"} & set(more) else {"cron": "30 2 * * *"}
        body = {"id": schedule_id, "type": "charge", "arguments": {"order_id": "o-1"}}
        response = await self.call("POST", "/v1/schedules", send={**body, **when, **more})
        assert response.status in {200, 201}, response.body
        return response

    async def claim(self) -> Any:
        request = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-1",
            queues=(("payments", 1),),
            types=("charge",),
            limit=1,
            lease_ms=30_000,
        )
        (claim,) = (await (await self.engine()).jobs.claim(request)).claims
        return claim

    async def log(self, claim: Any, *texts: str) -> None:
        lines = [Line(number, 5, "info", text) for number, text in enumerate(texts)]
        journal = Journal(pieces=tuple(Piece(i, pack([line])) for i, line in enumerate(lines)))
        await (await self.engine()).jobs.record([Recording(claim.job.id, claim.fence, journal)])

    async def succeed(self, claim: Any, result: bytes = b'{"paid": true}') -> None:
        await (await self.engine()).jobs.settle([settle(claim, Succeeded(result))])

    async def retry_later(self, claim: Any, message: str) -> None:
        """Let an attempt fail after which the job is tried again."""
        error = ErrorInfo(type="Busy", message=message, traceback="", fingerprint="f-2")
        policy = Retry(max_attempts=3, fixed=60)
        await (await self.engine()).jobs.settle([settle(claim, Failed(error), retry=policy)])

    async def fail(self, claim: Any) -> None:
        error = ErrorInfo(
            type="CardDeclined", message="no money", traceback="secret frames", fingerprint="f-1"
        )
        policy = Retry(max_attempts=1)
        await (await self.engine()).jobs.settle([settle(claim, Failed(error), retry=policy)])


@pytest.fixture
def url(tmp_path) -> str:
    """The address of a store that does not exist yet."""
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
async def make(url) -> AsyncIterator[Callable[..., Scene]]:
    """Make services on one store, with settings and keys of their own."""
    made: list[Scene] = []

    def scene(
        *,
        keys: list[str] | None = None,
        tokens: bool = False,
        jwts: Jwts | None = None,
        app: App | None = None,
        **settings: Any,
    ) -> Scene:
        app = app or App(url)
        app.configure(dataclasses.replace(app.settings, **settings))
        made.append(Scene(app, keys or [], tokens=tokens, jwts=jwts))
        return made[-1]

    yield scene
    for each in made:
        await each.service.close()


@pytest.fixture
async def scene(make) -> Scene:
    """A service whose workers know how to charge."""
    made = make()
    await made.publish("charge")
    return made


@pytest.fixture
def call(scene):
    return scene.call


@pytest.fixture
def calls() -> Iterator[Counter[str]]:
    """How often each verb of the store was called since the test began."""
    counted: Counter[str] = Counter()

    def count(event: str, fields: Mapping[str, Any]) -> None:
        if event == events.STORE_CALL:
            counted[fields["verb"]] += 1

    stop = events.listen(count)
    yield counted
    stop()


@pytest.fixture
def clock():
    made = Clock()
    # It stands still but for what a test adds.
    made.monotonic = lambda: 1_000.0 + made.later
    with runtime.install(made):
        yield made
