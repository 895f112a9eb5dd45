"""Whatever is sent, the answer is a refusal or a job: never an error of the service."""

import json
import random

import pytest

GOOD = {
    "type": "charge",
    "arguments": {"order_id": "o-1", "cents": 5},
    "delay": 1.5,
    "queue": "q",
    "priority": "low",
    "tenant": "t",
    "retry": {"delays": [1, 2]},
    "timeout": 5,
    "tags": ["a"],
    "metadata": {"a": [1, {"b": None}]},
    "idempotency_key": "k",
}
ODD = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    10**60,
    1e308,
    "",
    "\0",
    "\x7f",
    "x" * 70_000,
    "☃",
    "\U0001f600",
    [],
    {},
    [[]],
    {"": ""},
    {"a": {"b": {"c": []}}},
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+23:59",
    "2030-01-31T24:00:00Z",
]


@pytest.mark.parametrize("field", [*GOOD, "run_at", "unknown"])
async def test_odd_values_in_any_field_are_no_error_of_the_service(scene, field):
    for odd in ODD:
        body = {**GOOD, field: odd}
        response = await scene.call("POST", "/v1/jobs", send=body)
        assert response.status in {200, 201, 400, 409, 413, 422}, (odd, response.body)
        batch = await scene.call("POST", "/v1/jobs:batch", send=[body])
        assert batch.status in {200, 400, 413, 422}, (odd, batch.body)


async def test_odd_values_inside_policies_are_no_error_of_the_service(scene):
    names = ("max_attempts", "delays", "fixed", "base", "factor", "cap", "jitter", "no_retry_on")
    for name in names:
        for odd in [*ODD, [None], ["x"], [-1], [1e308], 10**9]:
            body = {**GOOD, "idempotency_key": None, "retry": {name: odd}}
            response = await scene.call("POST", "/v1/jobs", send=body)
            assert response.status in {201, 400, 413, 422}, (name, odd, response.body)


SCHEDULE = {
    "id": "odd",
    "type": "charge",
    "arguments": {"order_id": "o-1"},
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "gap": "skip",
    "twice": "both",
    "overlap": "skip",
    "catch_up": "all",
    "window": 5,
    "jitter": 5,
    "start": "2030-01-31T00:00:00Z",
    "end": "2040-01-31T00:00:00Z",
    "max_runs": 5,
    "hold_after": 5,
    "keep_succeeded": 5,
    "keep_failed": 5,
    "queue": "q",
    "priority": "low",
    "retry": {"delays": [1]},
    "timeout": 5,
    "tags": ["a"],
    "metadata": {"a": 1},
}


@pytest.mark.parametrize("field", [*SCHEDULE, "every", "rrule", "at", "tenant", "unknown"])
async def test_odd_values_in_a_schedule_are_no_error_of_the_service(scene, field):
    await scene.put("nightly")
    for odd in ODD:
        sent = {**SCHEDULE, field: odd}
        alone = {key: sent[key] for key in sent if key != "cron" or field == "cron"}
        for body in (sent, alone):
            response = await scene.call("POST", "/v1/schedules", send=body)
            assert response.status in {200, 201, 400, 413, 422}, (odd, response.body)
        times = {k: v for k, v in sent.items() if k in {"id", "cron", "start", "end", field}}
        body = {"type": "charge", "arguments": {"order_id": "o"}, "schedule": times}
        response = await scene.call("POST", "/v1/jobs", send=body)
        assert response.status in {200, 201, 400, 413, 422}, (odd, response.body)
        response = await scene.call("PATCH", "/v1/schedules/nightly", send={field: odd})
        assert response.status in {200, 400, 413, 422}, (odd, response.body)
        shown = await scene.call("GET", "/v1/schedules/nightly")
        assert shown.json["spec"] is not None
        assert (await scene.call("GET", "/v1/schedules/nightly/preview")).status == 200


@pytest.mark.parametrize(
    ("method", "path", "good"),
    [
        (
            "POST",
            "/v1/schedules/nightly/backfill",
            {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z", "at_once": 1},
        ),
        (
            "POST",
            "/v1/dlq:purge",
            {
                "type": ["charge"],
                "queue": ["q"],
                "tenant": ["t"],
                "fingerprint": ["f"],
                "tag": "x",
                "finished_after": "2020-01-01T00:00:00Z",
                "finished_before": "2030-01-01T00:00:00Z",
                "all": False,
                "dry_run": True,
                "limit": 5,
                "cursor": None,
            },
        ),
        (
            "POST",
            "/v1/jobs:change",
            {
                "action": "hold",
                "filter": {"type": ["charge"], "status": ["ready"], "schedule": ["nightly"]},
                "all": False,
                "reason": "because",
                "dry_run": True,
                "limit": 5,
                "cursor": None,
            },
        ),
        ("PUT", "/v1/queues/payments", {"max_wait_seconds": 5, "held": True}),
        ("PUT", "/v1/tenants/acme", {"weight": 5, "held": True}),
    ],
)
async def test_odd_values_of_operators_are_no_error_of_the_service(scene, method, path, good):
    await scene.put("nightly")
    for field in good:
        for odd in [*ODD, ["\0"], ["x" * 300]]:
            response = await scene.call(method, path, send={**good, field: odd})
            assert response.status in {200, 202, 400, 409, 413, 422}, (field, odd, response.body)


async def test_odd_ids_are_no_error_of_the_service(scene):
    odd = ("%00", "%ff", "%F0%9F%98%80", "%2F", "%2E%2E", "x" * 300, "%", "%zz", "a%0Ab", "%3F")
    for path in ("/v1/schedules/{}", "/v1/schedules/{}/runs", "/v1/queues/{}", "/v1/tenants/{}"):
        for name in odd:
            response = await scene.call("GET", path.format(name))
            assert response.status == 404, (name, response.body)
            response = await scene.call("PUT", path.format(name), send={"held": False})
            assert response.status in {200, 404, 405, 422}, (name, response.body)


@pytest.mark.parametrize("media", ["application/json", "application/x-ndjson"])
async def test_damaged_bodies_are_no_error_of_the_service(scene, media):
    chance = random.Random(7)
    good = json.dumps([GOOD, GOOD]).encode()
    for _ in range(300):
        body = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(body))
            body[place : place + chance.randint(0, 3)] = chance.choice(
                [b"", b"\xff", b"\\", b'"', b"{", b"]", b"\n", b"\\ud83d", b"1e999", b"\0", b":"]
            )
        response = await scene.call(
            "POST", "/v1/jobs:batch", raw=bytes(body), headers={"content-type": media}
        )
        assert response.status in {200, 400, 413, 422}, (body, response.body)


@pytest.mark.parametrize("name", ["idempotency-key", "authorization", "origin", "host", "accept"])
async def test_odd_headers_are_no_error_of_the_service(scene, name):
    for odd in ("", " ", "☃", "\x7f", "x" * 300, "http://[", "http://\x00"):
        response = await scene.call(
            "POST",
            "/v1/jobs",
            send={"type": "charge", "arguments": {"order_id": "o"}},
            headers={name: odd},
        )
        assert response.status < 500, (odd, response.body)
