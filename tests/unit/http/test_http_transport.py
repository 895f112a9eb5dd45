"""What happens to requests on a way that is not always good."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.http import HttpApp, ServiceRefused, ServiceUnreachable
from lamplighter.model.errors import StoreUnreachable
from lamplighter.port.values import JobFilter
from tests.unit.http.conftest import between, forwarded
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
    found = (await (await store.engine()).inspector.jobs(JobFilter(tag="lost"), limit=10)).jobs
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
    found = (await (await store.engine()).inspector.jobs(JobFilter(tag="batch"), limit=10)).jobs
    assert {record.job.id for record in found} == {handle.id for handle in handles}


@pytest.mark.parametrize(
    "refusal",
    [
        busy(b"503 Service Unavailable", b"store-unreachable", b"Retry-After: 0"),
        busy(b"429 Too Many Requests", b"rate-limited", b"Retry-After: 1"),
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad",
    ],
)
async def test_a_service_that_is_busy_is_asked_again(address, refusal):
    async def answer(number: int, request: bytes) -> bytes:
        return await forwarded(address, request) if number == 2 else refusal

    async with between(answer) as url:
        began = runtime.monotonic()
        app = HttpApp(url, token=KEY)
        assert (await app.submit("charge", ORDER)).answer == "created"
        await app.close()
    if b"Retry-After: 1" in refusal:
        assert runtime.monotonic() - began >= 2


async def test_what_stays_busy_is_told_as_what_it_is():
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


async def test_each_submission_carries_a_key_and_repeats_it():
    keys: list[bytes] = []

    async def answer(number: int, request: bytes) -> bytes | None:
        lines = request.lower().split(b"\r\n")
        keys.extend(line for line in lines if line.startswith(b"idempotency-key: "))
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
