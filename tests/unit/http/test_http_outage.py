"""A service that is away for a while, as during a deploy, loses no submission."""

import asyncio
import signal

import pytest

from lamplighter import runtime
from lamplighter.http import HttpApp, ServiceRefused, ServiceUnreachable
from lamplighter.model.errors import StoreUnreachable
from tests.unit.http.conftest import PROGRAM, Leaping, between
from tests.unit.http.test_http_transport import ORDER, busy
from tests.unit.server.test_serve import KEY, serving

AWAY = 12.0


class Outage(Leaping):
    """Leaps to the end of the outage; who sleeps then sleeps until the service is back."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = 0
        self.back = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self.seconds >= 1_000.0 + AWAY:
            self.asleep += 1
            await self.back.wait()


async def test_what_is_submitted_while_the_service_is_away_for_twelve_seconds_is_stored(
    tmp_path,
):
    (tmp_path / "shop.py").write_text(PROGRAM)
    (tmp_path / "keys").write_text(KEY)
    given = ("shop:app", "--key-file", "keys")
    with serving(tmp_path, *given) as (process, url):
        app = HttpApp(url.geturl(), token=KEY)
        await app.open()
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)

    with runtime.install(outage := Outage()):
        began = runtime.monotonic()
        calls = [await app.call("charge", ORDER) for _ in range(3)]
        waiting = asyncio.gather(app.submit("charge", ORDER), app.submit_many(calls), app.open())
        async with asyncio.timeout(30):
            while outage.asleep < 3:
                assert not waiting.done()
                await asyncio.sleep(0.001)
        with serving(tmp_path, *given, "--port", str(url.port)):
            outage.back.set()
            one, many, _ = await waiting
            took = runtime.monotonic() - began
            handles = [one, *many]
            assert [handle.answer for handle in handles] == ["created"] * 4
            assert {(await handle.record()).id for handle in handles} == {h.id for h in handles}
        await app.close()
    assert AWAY <= took < 30


async def test_a_service_that_comes_back_shortly_before_the_end_is_still_asked(leaping):
    back = runtime.monotonic() + 1.9

    async def answer(number: int, request: bytes) -> bytes:
        if runtime.monotonic() < back:
            return busy(b"503 Service Unavailable", b"store-unreachable")
        body = b'{"id": "01K9ZQ4T7M0G3E8V5C2R6W1XNB", "answer": "created"}'
        head = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: "
        return head + b"%d\r\n\r\n" % len(body) + body

    async with between(answer) as url:
        app = HttpApp(url, timeout=2.5)
        assert (await app.submit("charge", ORDER)).answer == "created"
        await app.close()


async def test_it_gives_up_when_the_time_is_over_and_not_before(leaping):
    asked: list[float] = []

    async def answer(number: int, request: bytes) -> bytes:
        asked.append(runtime.monotonic())
        return busy(b"503 Service Unavailable", b"store-unreachable")

    async with between(answer) as url:
        app = HttpApp(url, timeout=3.0)
        began = runtime.monotonic()
        with pytest.raises(StoreUnreachable, match="not now"):
            await app.submit("charge", ORDER)
        took = runtime.monotonic() - began
        await app.close()
    assert 2.5 <= took <= 4.0
    assert asked[-1] - began >= 2.5
    assert len(asked) < 15


async def test_a_time_that_the_service_names_beyond_the_end_is_not_waited_for(leaping):
    async def answer(number: int, request: bytes) -> bytes:
        return busy(b"429 Too Many Requests", b"rate-limited", b"Retry-After: 60")

    async with between(answer) as url:
        app = HttpApp(url, timeout=5.0)
        began = runtime.monotonic()
        with pytest.raises(ServiceRefused, match="not now"):
            await app.submit("charge", ORDER)
        await app.close()
    assert runtime.monotonic() - began < 1.0


async def test_a_change_that_reached_nobody_is_tried_until_the_end(leaping):
    async def refuse(number: int, request: bytes) -> bytes:
        raise AssertionError("nothing is to come here")

    async with between(refuse) as url:
        port = int(url.rpartition(":")[2])
    app = HttpApp(f"http://127.0.0.1:{port}", timeout=2.0)
    began = runtime.monotonic()
    with pytest.raises(ServiceUnreachable):
        await app.handle("01K9ZQ4T7M0G3E8V5C2R6W1XNB").replay()
    await app.close()
    assert runtime.monotonic() - began >= 1.5
