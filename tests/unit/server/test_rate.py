"""Each caller may make so many requests, and no more."""

import pytest

from lamplighter.server import remembered
from lamplighter.server.auth import Principal
from lamplighter.server.errors import RateLimited
from lamplighter.server.rate import Bucket, Rates

ALICE, BOB = Principal(name="alice"), Principal(name="bob")


def test_a_bucket_holds_a_burst_and_fills_with_time():
    bucket = Bucket(3, 0.0)
    assert [bucket.take(0.0, 2, 3) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.take(0.25, 2, 3) == pytest.approx(0.25)
    assert bucket.take(0.5, 2, 3) == 0
    assert bucket.take(100.0, 2, 3) == 0
    assert bucket.level == 2


async def test_who_asks_too_often_is_told_when_to_come_again(make, clock):
    made = make(http_rate=0.5, http_burst=2)
    made.become(ALICE)
    answers = [await made.call("GET", "/v1/types") for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    assert answers[2].code == "rate-limited"
    assert answers[2].headers["retry-after"] == "2"
    clock.later += 2
    assert (await made.call("GET", "/v1/types")).status == 200
    assert (await made.call("GET", "/v1/types")).status == 429


async def test_who_asks_too_often_is_refused_before_the_body_is_read(make, clock):
    made = make(http_rate=1, http_burst=1)
    await made.call("GET", "/v1/types")
    assert (await made.call("POST", "/v1/jobs", raw=b"{}")).status == 429
    assert made.call.unread


async def test_others_are_not_disturbed(make, clock):
    made = make(http_rate=1, http_burst=1)
    for principal in (ALICE, BOB):
        made.become(principal)
        assert (await made.call("GET", "/v1/types")).status == 200
        assert (await made.call("GET", "/v1/types")).status == 429


async def test_health_is_not_counted(make, clock):
    made = make(http_rate=1, http_burst=1)
    assert [(await made.call("GET", "/healthz")).status for _ in range(5)] == [200] * 5


async def test_without_a_rate_there_is_no_limit(make, clock):
    made = make(http_burst=1)
    assert [(await made.call("GET", "/v1/types")).status for _ in range(5)] == [200] * 5


def test_so_many_callers_are_remembered_and_no_more(clock, monkeypatch):
    monkeypatch.setattr(remembered, "MOST", 100)
    rates = Rates(1, 1)
    rates.take(ALICE.name)
    for number in range(1_000):
        rates.take(f"caller-{number}")
    assert len(list(rates._buckets)) == 100
    rates.take(ALICE.name)
    with pytest.raises(RateLimited):
        rates.take(ALICE.name)
