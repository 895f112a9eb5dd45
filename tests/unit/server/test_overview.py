"""The overview, the minutes behind it, and metrics."""

import re

import pytest

from lamplighter.model.activity import Tally
from lamplighter.observability import calls
from lamplighter.port.store import VERBS
from lamplighter.server.auth import Principal
from lamplighter.server.overview import counted
from lamplighter.server.routes import TABLE

LAGS = (90, 9, 0, 1, *([0] * 10))


async def tally(scene, **counts):
    engine = await scene.engine()
    await engine.activity.tally("w-1", 1, Tally(lags=LAGS, **counts))


async def test_an_empty_store_has_an_overview(make):
    found = (await make().call("GET", "/v1/overview")).json
    assert found["waiting"] == {"count": 0, "at_least": False}
    assert (found["oldest"], found["workers"], found["fire_lag_seconds"]) == (None, 0, 0)
    assert found["lag"] == {"p50_seconds": None, "p95_seconds": None, "p99_seconds": None}


async def test_the_overview_tells_what_waits_and_runs(scene):
    await scene.submit()
    await scene.claim()
    oldest = await scene.submit()
    await scene.submit()
    await scene.submit(delay=60)
    held = await scene.submit()
    await scene.call("POST", f"/v1/jobs/{held}/hold")

    found = (await scene.call("GET", "/v1/overview")).json

    numbers = {name: found[name]["count"] for name in ("waiting", "due", "scheduled", "held")}
    assert numbers == {"waiting": 4, "due": 2, "scheduled": 1, "held": 1}
    assert (found["running"]["count"], found["dead"]["count"]) == (1, 0)
    assert (found["oldest"]["id"], found["oldest"]["queue"]) == (oldest, "payments")
    assert 0 <= found["oldest"]["due_seconds"] < 10
    assert (found["workers"], found["slots"]) == (1, 5)


async def test_the_overview_counts_dead_letters_and_what_happened(scene):
    await scene.submit()
    await scene.fail(await scene.claim())
    await tally(scene, started=100, succeeded=90, failed=1, retried=9)

    found = (await scene.call("GET", "/v1/overview")).json

    assert found["dead"]["count"] == 1
    happened = found["last_minute"]
    assert (happened["started"], happened["succeeded"], happened["failed"]) == (100, 90, 1)
    assert found["lag"]["p50_seconds"] == pytest.approx(0.0056, abs=0.0001)
    assert 0.01 < found["lag"]["p95_seconds"] < 0.025


@pytest.mark.parametrize("path", ["/metrics", "/v1/overview", "/v1/stats"])
async def test_what_is_about_all_tenants_is_not_for_one_of_them(scene, path):
    scene.become(Principal(name="a", tenant="other"))
    assert (await scene.call("GET", path)).status == 403


async def test_stats_give_the_minutes_with_percentiles(scene):
    await tally(scene, started=100, succeeded=100)

    found = (await scene.call("GET", "/v1/stats?minutes=3")).json["minutes"]

    assert [minute["started"] for minute in found[:2]] == [0, 0]
    assert found[2]["succeeded"] == 100
    assert found[0]["lag"]["p99_seconds"] is None
    assert found[2]["lag"]["p99_seconds"] == pytest.approx(0.025)
    assert len((await scene.call("GET", "/v1/stats")).json["minutes"]) == 60


@pytest.mark.parametrize("minutes", ["0", "1441", "-1", "x", "1.5"])
async def test_minutes_that_are_not_kept_are_refused(call, minutes):
    response = await call("GET", f"/v1/stats?minutes={minutes}")
    assert (response.status, response.code) == (400, "invalid-query")


def test_beyond_the_limit_a_count_means_at_least():
    assert (counted(4_000, 5_999).count, counted(4_000, 5_999).at_least) == (9_999, False)
    assert (counted(4_000, 6_000).count, counted(4_000, 6_000).at_least) == (10_000, True)
    assert (counted(999, 5, most=1_000).count, counted(999, most=1_000).at_least) == (1_004, False)
    assert counted(1_000, 5, most=1_000).at_least


def value(text: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert found, f"{series} is not in:\n{text}"
    return float(found[1])


async def metrics(scene) -> str:
    response = await scene.call("GET", "/metrics")
    assert response.status == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return response.body.decode()


async def test_metrics_tell_what_is_in_the_store(scene):
    await scene.submit()
    await scene.submit(priority="high", delay=60)
    await scene.submit()
    await scene.claim()

    text = await metrics(scene)

    assert value(text, 'lamplighter_queue_ready_jobs{queue="payments"}') == 1
    assert value(text, 'lamplighter_queue_running_jobs{queue="payments"}') == 1
    assert value(text, 'lamplighter_queue_waiting_jobs{queue="payments",level="high"}') == 1
    assert value(text, 'lamplighter_queue_waiting_jobs{queue="payments",level="normal"}') == 1
    assert value(text, 'lamplighter_queue_oldest_seconds{queue="payments",level="high"}') == 0
    assert value(text, 'lamplighter_jobs{state="running"}') == 1
    assert value(text, 'lamplighter_workers{state="alive"}') == 1
    assert value(text, "lamplighter_dead_letters") == 0
    assert value(text, "lamplighter_schedule_lag_seconds") == 0


async def test_metrics_count_requests_by_route_and_not_by_what_callers_invent(scene):
    job_id = await scene.submit()
    await scene.call("GET", f"/v1/jobs/{job_id}")
    await scene.call("GET", "/v1/jobs/no-such-job")
    await scene.call("GET", "/nowhere/at/all")
    await scene.call("BREW", "/v1/overview")

    text = await metrics(scene)

    requests = "lamplighter_http_requests_total"
    route = 'method="GET",route="/v1/jobs/{id}"'
    assert value(text, f'{requests}{{{route},status="200"}}') == 1
    assert value(text, f'{requests}{{{route},status="404"}}') == 1
    assert value(text, f'{requests}{{method="other",route="none",status="404"}}') == 1
    wrong = f'{requests}{{method="other",route="/v1/overview",status="405"}}'
    assert value(text, wrong) == 1
    assert value(text, f"lamplighter_http_request_seconds_count{{{route}}}") == 2
    assert "nowhere" not in text
    assert "BREW" not in text


async def test_metrics_tell_how_the_store_answers(scene):
    await scene.submit()
    text = await metrics(scene)
    assert value(text, 'lamplighter_store_call_seconds_count{verb="submit"}') >= 1


async def test_counters_begin_at_zero(scene):
    calls.watch().take()  # what other tests have left: there is one count for a process
    text = await metrics(scene)
    requests = "lamplighter_http_requests_total"
    for route in TABLE:
        here = f'method="{route.method}",route="{route.path}"'
        for status in (*route.statuses, 500, 503):
            assert value(text, f'{requests}{{{here},status="{status}"}}') == 0
    assert value(text, f'{requests}{{method="other",route="none",status="404"}}') == 0
    for verb in VERBS:
        assert value(text, f'lamplighter_store_errors_total{{verb="{verb}"}}') == 0
    await scene.submit()
    text = await metrics(scene)
    assert value(text, f'{requests}{{method="POST",route="/v1/jobs",status="201"}}') == 1


async def test_where_nothing_is_counted_no_counter_begins(make):
    scene = make(metrics=0)
    await scene.publish("charge")
    text = await metrics(scene)
    assert "lamplighter_http_requests_total" not in text
    assert "lamplighter_store_errors_total" not in text


async def test_a_queue_that_is_gone_from_the_store_is_gone_from_metrics(make):
    scene = make(metrics_names=1)
    await scene.publish("charge")
    await scene.submit(queue="first")
    await scene.submit(queue="second")
    text = await metrics(scene)
    assert value(text, 'lamplighter_queue_ready_jobs{queue="first"}') == 1
    assert value(text, 'lamplighter_queue_ready_jobs{queue="other"}') == 1
    assert value(await metrics(scene), 'lamplighter_queue_ready_jobs{queue="other"}') == 1


async def test_a_queue_without_jobs_leaves_its_series_to_one_that_has_some(make):
    scene = make(metrics_names=1)
    await scene.publish("charge")
    job_id = await scene.submit(queue="a-first")
    assert value(await metrics(scene), 'lamplighter_queue_ready_jobs{queue="a-first"}') == 1
    await scene.submit(queue="second")
    assert value(await metrics(scene), 'lamplighter_queue_ready_jobs{queue="a-first"}') == 1
    await scene.call("DELETE", f"/v1/jobs/{job_id}")
    text = await metrics(scene)
    assert value(text, 'lamplighter_queue_ready_jobs{queue="second"}') == 1
    assert value(text, 'lamplighter_queue_ready_jobs{queue="other"}') == 0


async def test_no_tenant_is_named_in_metrics(scene):
    await scene.submit(tenant="canary-7f3a")
    assert "canary-7f3a" not in await metrics(scene)


@pytest.mark.parametrize("path", ["/metrics", "/v1/overview", "/v1/stats"])
async def test_where_keys_are_asked_for_one_is_needed(make, path):
    scene = make(keys=["k" * 40])
    assert (await scene.call("GET", path)).status == 401
    headers = {"authorization": f"Bearer {'k' * 40}"}
    assert (await scene.call("GET", path, headers=headers)).status == 200
