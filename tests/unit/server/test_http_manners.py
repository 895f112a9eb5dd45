"""What programs on the other side rely on: ids, versions, rates, waiting, origins, schemas."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.server import openapi
from lamplighter.server.auth import Principal
from lamplighter.server.routes import TABLE
from tests.unit.server.clocks import Clock
from tests.unit.server.test_tokens import issue

DOCUMENT = openapi.document(TABLE)
SCHEMAS = DOCUMENT["components"]["schemas"]


def parts(schema):
    """Give all schemas inside one."""
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from parts(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from parts(each)


# ── the document ─────────────────────────────────────────────────────────────────────────────


def test_no_object_of_the_document_looks_empty_and_no_default_makes_a_field_required():
    for name, schema in SCHEMAS.items():
        for part in parts(schema):
            if part.get("type") == "object" and "properties" not in part:
                assert part.get("additionalProperties") not in (None, False), name
            assert "default" not in part or "type" not in part, (name, part)
    assert SCHEMAS["Submission"]["properties"]["arguments"]["additionalProperties"] is True


def test_every_time_of_the_document_is_one():
    times = {"created_at", "started_at", "finished_at", "next_run", "run_at", "at", "due", "until"}
    seen = set()
    for name, schema in SCHEMAS.items():
        for field, described in schema.get("properties", {}).items():
            if field in times or field.endswith("_at"):
                kinds = [each for each in parts(described) if each.get("type") == "string"]
                assert all(each.get("format") == "date-time" for each in kinds), (name, field)
                seen.add(field)
    assert times - {"at", "due", "until"} <= seen


def test_the_document_states_the_limits():
    fields = SCHEMAS["Submission"]["properties"]
    assert (fields["type"]["minLength"], fields["type"]["maxLength"]) == (1, 64)
    assert fields["queue"]["anyOf"][0]["maxLength"] == 64
    assert fields["idempotency_key"]["anyOf"][0]["maxLength"] == 256
    assert fields["delay"]["anyOf"][0]["minimum"] == 0
    assert fields["tags"]["anyOf"][0]["maxItems"] == 20
    assert fields["tags"]["anyOf"][0]["items"]["maxLength"] == 64
    batch = DOCUMENT["paths"]["/v1/jobs:batch"]["post"]["requestBody"]["content"]
    assert batch["application/json"]["schema"]["maxItems"] == 10_000
    reason = next(
        each
        for each in DOCUMENT["paths"]["/v1/jobs/{id}/hold"]["post"]["parameters"]
        if each["name"] == "reason"
    )
    assert reason["schema"]["maxLength"] == 1_000


# ── headers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/none", "/healthz", "/v1/openapi.json"])
async def test_every_answer_carries_the_id_of_its_request(scene, path):
    answer = await scene.call("GET", path, headers={"X-Request-Id": "trace-7.a:b"})
    assert answer.headers["x-request-id"] == "trace-7.a:b"
    made = [(await scene.call("GET", path)).headers["x-request-id"] for _ in range(2)]
    assert len(set(made)) == 2


@pytest.mark.parametrize("given", ["a b", "x" * 200, "<script>", "", "a\tb"])
async def test_an_id_that_could_do_harm_is_replaced(scene, given):
    answer = await scene.call("GET", "/healthz", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] not in {given, ""}


async def test_a_failure_is_logged_with_the_id_of_its_request(scene, caplog, monkeypatch):
    monkeypatch.setattr(scene.service, "record", None)
    answer = await scene.call("GET", "/v1/jobs/x", headers={"X-Request-Id": "trace-7"})
    assert answer.status == 500
    assert "[trace-7]" in caplog.text


async def test_what_is_left_of_a_rate_is_told(make, clock):
    made = make(http_rate=2.0, http_burst=4)
    made.become(Principal(name="alice"))
    answers = [await made.call("GET", "/v1/me") for _ in range(5)]
    assert [each.headers["ratelimit-remaining"] for each in answers] == ["3", "2", "1", "0", "0"]
    assert {each.headers["ratelimit-limit"] for each in answers} == {"4"}
    assert [each.headers["ratelimit-reset"] for each in answers[:2]] == ["0", "1"]
    assert answers[4].status == 429


async def test_without_a_rate_nothing_is_told_of_it(scene):
    assert "ratelimit-limit" not in (await scene.call("GET", "/v1/me")).headers


# ── versions ─────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_is_changed_only_if_it_is_what_was_read(scene):
    await scene.put()
    read = await scene.call("GET", "/v1/schedules/nightly")
    tag = read.headers["etag"]
    assert tag == f'"{read.json["version"]}"'

    async def patch(match, runs):
        return await scene.call(
            "PATCH", "/v1/schedules/nightly", send={"max_runs": runs}, headers={"If-Match": match}
        )

    changed = await patch(tag, 5)
    assert changed.status == 200
    assert changed.headers["etag"] != tag
    refused = await patch(tag, 6)
    assert (refused.status, refused.code) == (412, "precondition-failed")
    assert (await patch(f'"77", {changed.headers["etag"]}', 7)).status == 200
    assert (await patch("*", 8)).status == 200
    shown = await scene.call("GET", "/v1/schedules/nightly")
    assert shown.json["spec"]["max_runs"] == 8


async def test_of_two_who_change_what_they_have_read_one_is_refused(scene):
    await scene.put()
    tag = (await scene.call("GET", "/v1/schedules/nightly")).headers["etag"]
    tries = (
        scene.call(
            "PATCH", "/v1/schedules/nightly", send={"max_runs": runs}, headers={"If-Match": tag}
        )
        for runs in (5, 6, 7)
    )
    assert sorted(each.status for each in await asyncio.gather(*tries)) == [200, 412, 412]


UNCHECKED = {
    "If-None-Match": "*",
    "If-Unmodified-Since": "Thu, 31 Jan 2030 12:00:00 GMT",
}
"""Preconditions that no route checks when it changes something."""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/v1/schedules/nightly", None),
        ("POST", "/v1/schedules/nightly/hold", None),
        ("PUT", "/v1/queues/payments", {"held": True}),
        ("PUT", "/v1/tenants/default", {"weight": 2}),
        ("POST", "/v1/jobs", {"type": "charge"}),
    ],
)
async def test_a_precondition_that_nobody_checks_is_refused(scene, method, path, body):
    await scene.put()
    for name, value in {"If-Match": '"1"', **UNCHECKED}.items():
        answer = await scene.call(method, path, send=body, headers={name: value})
        assert (answer.status, answer.code) == (400, "unknown-precondition"), name
        assert name in answer.json["detail"]


async def test_where_versions_are_compared_only_if_match_is_heeded(scene):
    await scene.put()
    tag = (await scene.call("GET", "/v1/schedules/nightly")).headers["etag"]
    for name, value in UNCHECKED.items():
        headers = {"If-Match": tag, name: value}
        answer = await scene.call(
            "PATCH", "/v1/schedules/nightly", send={"max_runs": 5}, headers=headers
        )
        assert (answer.status, answer.code) == (400, "unknown-precondition"), name
        assert name in answer.json["detail"]


async def test_reading_takes_what_caches_send(scene):
    await scene.put()
    for name, value in UNCHECKED.items():
        for path in ("/v1/schedules/nightly", "/v1/jobs"):
            assert (await scene.call("GET", path, headers={name: value})).status == 200
    looked = await scene.call(
        "POST", "/v1/schedules:preview", send={"cron": "0 0 * * *"}, headers=UNCHECKED
    )
    assert looked.status == 200


# ── waiting ──────────────────────────────────────────────────────────────────────────────────


async def test_a_request_waits_for_the_end_of_a_job(scene, calls):
    job_id = await scene.submit()
    claim = await scene.claim()
    calls.clear()
    waiting = asyncio.create_task(scene.call("GET", f"/v1/jobs/{job_id}?wait=20"))
    while not calls["job"]:  # noqa: ASYNC110 - the store tells nobody that it was read
        await asyncio.sleep(0.001)
    assert not waiting.done()
    await scene.succeed(claim)
    answer = await asyncio.wait_for(waiting, 5)
    assert (answer.json["status"], answer.json["result"]) == ("succeeded", {"paid": True})


async def test_a_request_that_has_waited_long_enough_is_answered(scene):
    job_id = await scene.submit(delay=60)
    began = runtime.monotonic()
    answer = await scene.call("GET", f"/v1/jobs/{job_id}?wait=0.4")
    assert 0.3 < runtime.monotonic() - began < 3
    assert (answer.status, answer.json["status"]) == (200, "scheduled")


async def test_waiting_reads_the_store_now_and_then_and_not_for_what_has_ended(scene, calls):
    job_id = await scene.submit(delay=60)
    calls.clear()
    await scene.call("GET", f"/v1/jobs/{job_id}?wait=1.5")
    assert calls["job"] <= 5
    await scene.call("DELETE", f"/v1/jobs/{job_id}")
    began = runtime.monotonic()
    assert (await scene.call("GET", f"/v1/jobs/{job_id}?wait=20")).json["status"] == "cancelled"
    assert runtime.monotonic() - began < 5


async def test_one_caller_waits_for_so_many_jobs(make):
    made = make(http_events_each=2)
    await made.publish("charge")
    job_id = await made.submit(delay=60)
    tries = [made.call("GET", f"/v1/jobs/{job_id}?wait=1") for _ in range(3)]
    assert sorted(each.status for each in await asyncio.gather(*tries)) == [200, 200, 429]
    assert (await made.call("GET", f"/v1/jobs/{job_id}?wait=0.1")).status == 200


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "x"])
async def test_a_wait_that_cannot_be_is_refused(scene, wait):
    job_id = await scene.submit()
    assert (await scene.call("GET", f"/v1/jobs/{job_id}?wait={wait}")).code == "invalid-query"


# ── lists ────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_are_listed_by_when_they_were_created(scene):
    with runtime.install(Clock(-0.02)):
        first = await scene.submit()
    between = (await scene.call("GET", f"/v1/jobs/{first}")).json["created_at"]
    second = await scene.submit()
    created = (await scene.call("GET", f"/v1/jobs/{second}")).json["created_at"]

    async def listed(query):
        answer = await scene.call("GET", f"/v1/jobs?{query}")
        assert answer.status == 200, answer.body
        return [job["id"] for job in answer.json["jobs"]]

    assert await listed(f"created_after={between}") == [second, first]
    assert await listed(f"created_after={created}") == [second]
    assert await listed(f"created_before={created}") == [first]
    assert await listed(f"created_after={between}&created_before={between}") == []
    assert (await scene.call("GET", "/v1/jobs?created_after=5")).code == "invalid-query"


# ── origins ──────────────────────────────────────────────────────────────────────────────────

PAGE = "https://ops.example"
ASKING = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
}


@pytest.fixture
async def shared(make):
    made = make(tokens=True, http_cors=f"{PAGE}, https://other.example")
    await made.publish("charge")
    return made


async def test_pages_of_named_origins_may_call_with_a_token(shared):
    asked = await shared.call("OPTIONS", "/v1/jobs", headers=ASKING)
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in asked.headers
    headers = {"origin": PAGE, "Authorization": f"Bearer {await issue(shared, 'jobs:read')}"}
    answer = await shared.call("GET", "/v1/jobs", headers=headers)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "https://ops.example.evil", "http://ops.example", "null"]
)
async def test_pages_of_other_origins_may_not(shared, origin):
    asked = await shared.call("OPTIONS", "/v1/jobs", headers={**ASKING, "origin": origin})
    assert "access-control-allow-origin" not in asked.headers
    answer = await shared.call("GET", "/healthz", headers={"origin": origin})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"


async def test_by_default_no_page_of_another_origin_may_call(scene):
    asked = await scene.call("OPTIONS", "/v1/jobs", headers={**ASKING, "host": "127.0.0.1"})
    assert asked.code == "wrong-method"
    assert "access-control-allow-origin" not in asked.headers


async def test_a_named_origin_may_call_a_service_that_asks_for_no_token(make):
    made = make(http_cors=PAGE)
    headers = {"origin": PAGE, "sec-fetch-site": "cross-site"}
    assert (await made.call("GET", "/v1/jobs", headers=headers)).status == 200
    headers["origin"] = "https://evil.example"
    assert (await made.call("GET", "/v1/jobs", headers=headers)).code == "forbidden"
