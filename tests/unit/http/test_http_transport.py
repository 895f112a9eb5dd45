"""What happens to requests on a way that is not always good."""

import asyncio
import contextlib
import json

import pytest

from lamplighter import runtime
from lamplighter.http import HttpApp, ServiceRefused, ServiceUnreachable
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.filters import Filter
from tests.unit.http.conftest import between, forwarded, gone
from tests.unit.server.test_serve import KEY

ORDER = {"order_id": "o-1", "cents": 995}


def busy(status: bytes, code: bytes, *headers: bytes) -> bytes:
    body = b'{"code": "%b", "detail": "not now", "hint": "wait"}' % code
    lines = [b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body), b"", body]
    return b"\r\n".join(lines)


async def test_a_lost_answer_makes_no_second_job(address, store):
    async def answer(number: int, request: bytes) -> bytes | None:
        said = await forwarded(address, request)
        return said if number else None

    async with between(answer) as url:
        app = HttpApp(url, token=KEY)
        handle = await app.submit("charge", ORDER, tags=["lost"])
        await app.close()
    assert handle.answer == "created"
    found = (await (await store.engine()).inspector.jobs(Filter(tag="lost"), limit=10)).jobs
    assert [record.job.id for record in found] == [handle.id]


async def test_a_lost_answer_of_a_batch_makes_no_second_jobs(address, store):
    async def answer(number: int, request: bytes) -> bytes | None:
        said = await forwarded(address, request)
        return said if number else None

    async with between(answer) as url:
        app = HttpApp(url, token=KEY)
        calls = [await app.call("charge", ORDER, tags=["batch"]) for _ in range(5)]
        handles = await app.submit_many(calls)
        await app.close()
    found = (await (await store.engine()).inspector.jobs(Filter(tag="batch"), limit=10)).jobs
    assert {record.job.id for record in found} == {handle.id for handle in handles}


@pytest.mark.parametrize(
    "refusal",
    [
        busy(b"503 Service Unavailable", b"store-unreachable", b"Retry-After: 0"),
        busy(b"429 Too Many Requests", b"rate-limited", b"Retry-After: 1"),
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad",
    ],
)
async def test_a_service_that_is_busy_is_asked_again(address, refusal, leaping):
    async def answer(number: int, request: bytes) -> bytes:
        return await forwarded(address, request) if number == 2 else refusal

    async with between(answer) as url:
        began = runtime.monotonic()
        app = HttpApp(url, token=KEY)
        assert (await app.submit("charge", ORDER)).answer == "created"
        await app.close()
    if b"Retry-After: 1" in refusal:
        assert runtime.monotonic() - began >= 2


async def test_what_stays_busy_is_told_as_what_it_is(leaping):
    async def answer(number: int, request: bytes) -> bytes:
        return busy(b"503 Service Unavailable", b"store-unreachable")

    async with between(answer) as url:
        app = HttpApp(url, timeout=0.5)
        with pytest.raises(StoreUnreachable, match="not now"):
            await app.submit("charge", ORDER)
        await app.close()


async def test_what_may_not_be_repeated_is_not():
    asked: list[bytes] = []

    async def answer(number: int, request: bytes) -> bytes | None:
        asked.append(request)
        return None if number == 0 else busy(b"503 Service Unavailable", b"overdue")

    async with between(answer) as url:
        app = HttpApp(url)
        handle = app.handle("01K9ZQ4T7M0G3E8V5C2R6W1XNB")
        with pytest.raises(ServiceUnreachable):
            await handle.replay()
        with pytest.raises(ServiceRefused, match="overdue"):
            await handle.retry()
        await app.close()
    assert len(asked) == 2


async def test_each_submission_carries_a_key_and_repeats_it(leaping):
    keys: list[str] = []

    async def answer(number: int, request: bytes) -> bytes | None:
        keys.append(json.loads(request.partition(b"\r\n\r\n")[2])["idempotency_key"])
        return None

    async with between(answer) as url:
        app = HttpApp(url, timeout=3.0)
        with pytest.raises(ServiceUnreachable, match="127"):
            await app.submit("charge", ORDER)
        await app.close()
    assert len(keys) > 1
    assert len(set(keys)) == 1


async def test_a_service_that_says_nothing_is_given_up():
    async def answer(number: int, request: bytes) -> bytes | None:
        await asyncio.sleep(60)

    async with between(answer) as url:
        app = HttpApp(url, timeout=0.3)
        with pytest.raises(ServiceUnreachable):
            await app.open()
        await app.close()


async def test_an_answer_of_somebody_else_is_told_as_it_is():
    async def answer(number: int, request: bytes) -> bytes:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>"

    async with between(answer) as url:
        app = HttpApp(url)
        with pytest.raises(ServiceRefused, match="<html>") as caught:
            await app.submit("charge", ORDER)
        await app.close()
    assert (caught.value.status, caught.value.problem) == (404, "")


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["a page", "other JSON", "nothing", "a redirect"],
)
async def test_what_only_looks_like_a_success_is_refused(said):
    asked: list[bytes] = []

    async def answer(number: int, request: bytes) -> bytes:
        asked.append(request)
        return said

    async with between(answer) as url:
        app = HttpApp(url)
        handle = app.handle("01K9ZQ4T7M0G3E8V5C2R6W1XNB")
        for refused in (
            app.submit("charge", ORDER),
            app.submit_many([await app.call("charge", ORDER)]),
            handle.record(),
        ):
            with pytest.raises(ServiceRefused, match="none of the service") as caught:
                await refused
            assert (caught.value.status, caught.value.problem) == (int(said[9:12]), "")
        await app.close()
    assert len(asked) == 3


async def test_a_page_before_the_service_is_taken_for_no_change():
    async def answer(number: int, request: bytes) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nlogin"

    async with between(answer) as url:
        app = HttpApp(url)
        with pytest.raises(ServiceRefused, match="login"):
            await app.handle("01K9ZQ4T7M0G3E8V5C2R6W1XNB").cancel()
        with pytest.raises(ServiceRefused, match="login"):
            await app.open()
        await app.close()


async def test_a_batch_of_another_length_is_none_of_the_service():
    body = b'{"jobs": []}'

    async def answer(number: int, request: bytes) -> bytes:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return head % len(body) + body

    async with between(answer) as url:
        app = HttpApp(url)
        with pytest.raises(ServiceRefused, match="jobs"):
            await app.submit_many([await app.call("charge", ORDER)])
        await app.close()


async def test_an_answer_that_comes_drop_by_drop_is_given_up_in_time():
    dripped = asyncio.Event()

    async def drip(reader, writer) -> None:
        # The client may give up before it has asked, too.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not writer.is_closing() and not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        dripped.set()
        await gone(writer)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        app = HttpApp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=0.5)
        began = runtime.monotonic()
        with pytest.raises(ServiceUnreachable, match="TimeoutError"):
            await app.open()
        assert runtime.monotonic() - began < 2
        await app.close()
        await asyncio.wait_for(dripped.wait(), 10)
