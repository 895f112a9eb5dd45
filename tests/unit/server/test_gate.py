"""What the gate lets through, and what it refuses before anything is made of it."""

import asyncio
import gc
import json

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.names import PAYLOAD_LIMIT
from lamplighter.server import gate
from lamplighter.server.auth import LOCAL
from lamplighter.server.deadlines import Deadlines
from lamplighter.server.errors import HttpError
from lamplighter.server.reading import BodyReader
from lamplighter.server.route import Body, Nothing, Request
from lamplighter.server.routes import jobs
from lamplighter.server.submission import Submission

SMALL = Settings(http_json_depth=4, http_json_keys=10, http_json_string=256, http_json_digits=20)


def refusal(body: bytes, settings: Settings = SMALL, *, items: bool = False) -> str | None:
    try:
        gate.look(body, settings, items=items)
    except HttpError as error:
        return error.code
    return None


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def keys(number: int) -> bytes:
    return json.dumps({f"k{n}": n for n in range(number)}).encode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (nested(4), None),
        (nested(5), "limit-exceeded"),
        (b'{"a":' * 4 + b"1" + b"}" * 4, None),
        (b'{"a":' * 5 + b"1" + b"}" * 5, "limit-exceeded"),
        (b"[" * 100_000, "limit-exceeded"),
        (b"]", "malformed-body"),
        (keys(10), None),
        (keys(11), "limit-exceeded"),
        (json.dumps(["x"] * 100).encode(), None),
        (json.dumps("x" * 254).encode(), None),
        (json.dumps("x" * 255).encode(), "limit-exceeded"),
        (json.dumps({"x" * 300: 1}).encode(), "limit-exceeded"),
        (b"1" * 20, None),
        (b"1" * 21, "limit-exceeded"),
        (b"-1." + b"0" * 30 + b"e5", "limit-exceeded"),
        (b'{"a": "' + b"9" * 100 + b'"}', None),
        (b'{"a": "[[[[[[[[{{{{"}', None),
        (b'{"a": "\\"[[[[[[[["}', None),
        (b'{"a": "\\\\"}', None),
        (b'"no end', "malformed-body"),
        (b'"no end \\"', "malformed-body"),
        (b'{"a": 1, "a": 2}', "malformed-body"),
        (b'{"a": 1, "a" \n : 2}', "malformed-body"),
        (b'{"a": 1, "\\u0061": 2}', "malformed-body"),
        (b'{"\\u0061": 1, "a": 2}', "malformed-body"),
        (b'{"\\ud800": 1, "\\uD800": 2}', "malformed-body"),
        (b'{"\\/": 1, "/": 2}', "malformed-body"),
        (b'{"\\x": 1}', "malformed-body"),
        (b'{"\\u0061": 1, "b": 2, "\\"": 3}', None),
        (b'{"a": {"a": 1}, "b": {"a": 2}}', None),
        (b'["a", "a"]', None),
        (b"", None),
        (b"\xff\x00", None),
    ],
)
def test_a_body_is_measured_by_what_it_contains(body, code):
    assert refusal(body) == code


def test_jobs_of_a_batch_are_measured_one_by_one():
    batch = b"[" + b",".join([keys(8)] * 50) + b"]"
    assert refusal(batch, items=True) is None
    assert refusal(batch) == "limit-exceeded"
    assert refusal(b"[" + b'{"a":' * 4 + b"1" + b"}" * 4 + b"]", items=True) is None
    assert refusal(b"\n".join([keys(8)] * 50), items=True) is None
    assert refusal(b"[" + keys(11) + b"]", items=True) == "limit-exceeded"


def test_one_large_job_of_a_batch_is_refused():
    small = Settings(http_body_bytes=1024)
    one = json.dumps({"a": ["x" * 100] * 11}).encode()
    assert refusal(b"[" + one + b"]", small, items=True) == "body-too-large"
    assert refusal(one + b"\n", small, items=True) == "body-too-large"


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b'""', b"null", b"true"])
def test_every_value_counts(value):
    def of(number: int) -> bytes:
        return b"[" + b",".join([value] * number) + b"]"

    few = Settings(http_json_values=100)
    assert refusal(of(99), few) is None
    assert refusal(of(100), few) == "limit-exceeded"
    batch = [b'{"a":%b}' % of(40)] * 30
    assert refusal(b"[" + b",".join(batch) + b"]", few, items=True) is None
    assert refusal(b"[" + b",".join([*batch, of(100)]) + b"]", few, items=True) == "limit-exceeded"


@pytest.mark.parametrize(("before", "between", "after"), [(b"[", b",", b"]"), (b"", b"\n", b"")])
def test_the_values_of_a_whole_batch_count_too(before, between, after):
    few = Settings(http_json_values=100)
    job = json.dumps({"a": [0] * 40}).encode()

    def of(number: int) -> bytes:
        return before + between.join([job] * number) + after

    assert refusal(of(46), few, items=True) is None
    assert refusal(of(49), few, items=True) == "limit-exceeded"


def test_a_job_of_the_largest_size_may_have_values_of_any_kind():
    arguments = b"[" + b",".join([b"1"] * (PAYLOAD_LIMIT // 2)) + b"]"
    assert refusal(b'{"type":"charge","arguments":{"a":%b}}' % arguments, Settings()) is None


async def turns_beside(work) -> int:
    """Count how often others have their turn while some work is done."""
    turns, task = 0, asyncio.create_task(work)
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


async def test_a_body_of_some_size_is_looked_at_beside_other_requests():
    large = b"[" + b",".join([b"[]"] * 20_000) + b"]"
    assert await turns_beside(gate.check_json(large[:7_000] + b"]", Settings())) == 1
    assert await turns_beside(gate.check_json(large, Settings())) > 1


async def test_no_garbage_is_looked_for_while_a_body_is_made(make):
    """With many values in it that would take many times as long, and all others wait."""
    made = make(http_unknown_types=1)
    job = {"type": "t", "arguments": {"a": [[]] * 15_000}}
    reader = BodyReader(Body(kind=Submission, example=None, many=True), Deadlines(10.0))
    received = [{"type": "http.request", "body": json.dumps([job] * 20).encode()}]
    scope = {"headers": [(b"content-type", b"application/json")]}
    looks = []

    async def receive():
        return received.pop()

    def count(phase: str, _) -> None:
        looks.append(phase)

    gc.callbacks.append(count)
    try:
        read = await reader.read(scope, receive, made.service.settings)
    finally:
        gc.callbacks.remove(count)
    assert len(read) == 20
    assert looks.count("start") < 20
    assert gc.isenabled()


async def test_large_jobs_of_a_batch_are_checked_with_others_between_them(make):
    made = make(http_unknown_types=1)
    await made.call("POST", "/v1/jobs", send={"type": "t"})
    given = [Submission(type="t", arguments={"a": "x" * 20_000}) for _ in range(10)]
    request = Request(service=made.service, principal=LOCAL, query=Nothing(), body=given)
    assert await turns_beside(jobs._checked(request)) >= 10


def test_looking_at_the_worst_of_bodies_takes_time_in_proportion():
    """A pattern that goes back and forth would need minutes for these."""
    limits = Settings(
        http_json_string=1 << 26,
        http_json_digits=1000,
        http_json_keys=10**7,
        http_json_values=10**7,
    )
    for body in (b'"' + b"\\" * 1_000_000, b'"' + b" " * 1_000_000, b'"a" ' * 250_000):
        start = runtime.monotonic()
        refusal(body, limits)
        assert runtime.monotonic() - start < 10


async def test_a_body_that_says_it_is_too_large_is_not_read(scene):
    response = await scene.call(
        "POST", "/v1/jobs", raw=b"{}", headers={"content-length": str(50 * 2**20)}
    )
    assert (response.status, response.code) == (413, "body-too-large")
    assert scene.call.unread


async def test_a_body_that_turns_out_too_large_is_read_no_further(scene):
    chunks = [b" " * 65_536] * 100
    response = await scene.call(
        "POST", "/v1/jobs", chunks=chunks, headers={"content-type": "application/json"}
    )
    assert (response.status, response.code) == (413, "body-too-large")
    assert len(scene.call.unread) > 90


async def test_a_body_in_pieces_is_read_whole(scene):
    body = json.dumps({"type": "charge", "arguments": {"order_id": "o"}}).encode()
    response = await scene.call(
        "POST",
        "/v1/jobs",
        chunks=[bytes([byte]) for byte in body],
        headers={"content-type": "application/json"},
    )
    assert response.status == 201


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"a":1,"b":2}', None),
        (b'{"a":1,"a":2}', "malformed-body"),
        (b'{"a":1,"a" :2}', "malformed-body"),
        (b'{"a" :1,"b":2,"a":3}', "malformed-body"),
        (b'{"x":{"a":1},"y":{"a":1}}', None),
        (b'{"a":"b:","b:":"a"}', None),
        (b'{"a":"\\"","a":1}', "malformed-body"),
        (b'{"a":"\\"a:","b":1}', None),
        (b'{"a":"' + b"1" * 80 + b'"}', None),
        (b'{"a":' + b"1" * 80 + b"}", "limit-exceeded"),
        (nested(64), None),
        (nested(65), "limit-exceeded"),
        (b"]", "malformed-body"),
        (b'{"a":"b}', "malformed-body"),
        (b'{"a":1}]', "malformed-body"),
    ],
)
def test_a_small_body_is_measured_by_the_same_rules(body, code):
    assert refusal(body, Settings()) == code


async def test_a_body_that_does_not_come_is_given_up():
    async def silence():
        await asyncio.Event().wait()

    with pytest.raises(HttpError) as caught:
        await gate.read_body(silence, None, 100, Deadlines(0.1))
    assert caught.value.code == "slow-request"


async def test_a_request_that_takes_too_long_is_answered(make):
    made = make(http_timeout=0.1)

    async def stuck():
        await asyncio.Event().wait()

    made.service.inspector = stuck
    response = await made.call("GET", "/v1/types")
    assert (response.status, response.code) == (503, "overdue")


async def test_what_nobody_foresaw_is_answered_without_a_trace(scene, caplog):
    async def broken():
        raise ZeroDivisionError("inner secret")

    scene.service.inspector = broken
    response = await scene.call("GET", "/v1/types")
    assert (response.status, response.code) == (500, "unexpected")
    assert b"inner secret" not in response.body
    assert "inner secret" in caplog.text


async def test_long_addresses_and_large_headers_are_refused(scene):
    response = await scene.call("GET", "/v1/jobs?tag=" + "x" * 8192)
    assert (response.status, response.code) == (414, "url-too-long")
    response = await scene.call("GET", "/v1/jobs", headers={"x-large": "x" * 16_384})
    assert (response.status, response.code) == (431, "headers-too-large")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"type": "charge", "arguments": {"order_id": NaN}}',
        b'{"type": "charge", "arguments": {"order_id": Infinity}}',
        b'{"type": "\xff"}',
        b'{"type": "charge", "arguments": {"order_id": "\\ud800"}}',
        b'{"type": "charge", "type": "charge"}',
        b'{"type": "charge"} {}',
    ],
)
async def test_what_is_not_json_is_refused(scene, body):
    response = await scene.call("POST", "/v1/jobs", raw=body)
    assert (response.status, response.code) == (400, "malformed-body")


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
@pytest.mark.parametrize(
    "body",
    [
        b'"\xff"',
        b'{"type": "charge", "delay": "\xff"}',
        b'{"type": "charge", "delay": "x", "\xff": 1}',
        b'[{"type": "charge", "delay": "\xff"}]',
        b'[{"delay": "x", "\xff": 1}]',
    ],
)
async def test_what_is_no_text_and_does_not_fit_either_is_refused(scene, path, body):
    response = await scene.call("POST", path, raw=body)
    assert (response.status, response.code) in {(400, "malformed-body"), (422, "invalid-body")}


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_of_another_kind_is_refused(scene, media):
    response = await scene.call("POST", "/v1/jobs", raw=b"{}", headers={"content-type": media})
    assert (response.status, response.code) == (415, "wrong-media-type")


async def test_a_packed_body_is_refused(scene):
    response = await scene.call("POST", "/v1/jobs", raw=b"{}", headers={"content-encoding": "gzip"})
    assert (response.status, response.code) == (415, "wrong-media-type")


async def test_what_is_not_declared_does_not_exist(scene):
    for path in ("/v1", "/v1/jobs/", "/v1/jobs:other", "/docs"):
        response = await scene.call("GET", path)
        assert (response.status, response.code) == (404, "unknown-path")
    response = await scene.call("PATCH", "/v1/jobs")
    assert (response.status, response.code) == (405, "wrong-method")
    assert response.headers["allow"] == "GET, HEAD, POST"
