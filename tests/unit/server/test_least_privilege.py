"""A scope allows what it names and nothing beside it; a tenant learns nothing of the fleet."""

import dataclasses
import json

import pytest

from lamplighter import App
from lamplighter.model.access import Scope, granted
from lamplighter.port.access import About, entries_of
from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings
from lamplighter.server.auth import Principal

WRITER = Principal(name="writer", scopes=granted(["jobs:write", "schedules:write"]))
READER = Principal(
    name="reader",
    scopes=granted(["jobs:write", "jobs:read", "schedules:write", "schedules:read"]),
)
TENANT = Principal(name="acme-ops", scopes=granted(["operator"]), tenant="acme")
CONTENT = "o-CONTENT"


@pytest.mark.parametrize(
    ("method", "action", "body"),
    [
        ("PATCH", "", {}),
        ("POST", "/hold", None),
        ("POST", "/unhold", None),
        (
            "POST",
            "/backfill",
            {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"},
        ),
    ],
)
async def test_writing_a_schedule_shows_its_job_only_with_the_read_scope(
    scene, method, action, body
):
    await scene.put(arguments={"order_id": CONTENT}, metadata={"note": CONTENT})
    scene.become(WRITER)
    answer = await scene.call(method, f"/v1/schedules/nightly{action}", send=body)
    assert answer.status in {200, 202}, answer.body
    assert CONTENT.encode() not in answer.body
    assert answer.json["spec"] is None
    assert "schedules:read" in answer.json["unreadable"]
    assert answer.json["version"]
    scene.become(READER)
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send={})
    assert answer.json["spec"]["arguments"] == {"order_id": CONTENT}


async def test_a_change_that_stored_arguments_do_not_fit_shows_them_only_with_the_read_scope(
    make, url
):
    app = App(url)

    @app.job
    def charge(order_id: str) -> None: ...

    @app.job
    def ship(order_id: int) -> None: ...

    scene = make(app=app)
    await scene.put(arguments={"order_id": CONTENT})
    scene.become(WRITER)
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send={"type": "ship"})
    assert (answer.status, answer.code) == (422, "invalid-arguments")
    assert CONTENT.encode() not in answer.body
    scene.become(READER)
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send={"type": "ship"})
    assert CONTENT in answer.json["detail"]


OWNER = Principal(name="owner")
CALENDARS = {
    "cron": {"cron": "17 4 * * 2", "timezone": "Asia/Kathmandu", "gap": "skip"},
    "rrule": {"rrule": "FREQ=WEEKLY;BYDAY=TU;BYHOUR=4;BYMINUTE=17", "timezone": "Asia/Kathmandu"},
    "every": {"every": 77_777},
    "at": {"at": "2231-07-13T04:17:31Z"},
}
BOUNDS = {"start": "2231-03-07T05:11:13Z", "end": "2233-08-09T06:12:14Z"}
STORED = {
    "type": "charge",
    "arguments": {"order_id": f"{CONTENT}-{'x' * 30_000}"},
    "queue": f"queue-{CONTENT}",
    "tags": [f"tag-{CONTENT}"],
    "metadata": {"note": CONTENT},
    "retry": {"delays": [7_654.5], "no_retry_on": [f"Error-{CONTENT}"]},
    "timeout": 4_321.5,
    "overlap": "queue_one",
    "catch_up": "none",
    "window": 8_765.5,
    "max_runs": 98_765,
    "hold_after": 87_654,
    "keep_succeeded": 8_642,
    "keep_failed": 7_531,
}
CANARIES = [
    CONTENT,
    *("17 4", "04:17", "Tuesday", "BYDAY=TU", "Kathmandu", "77777", "77,777", "21:36:17"),
    *("2231", "2233", "7654", "4321", "8765", "9876", "8642", "7531", "queue_one", "30,0"),
]
"""What stands in none of the changes below, and in the stored schedule in one form or another."""
LONG_AGO = {"start": "2020-01-01T00:00:10Z", "end": "2020-01-01T00:00:20Z"}
CHANGES: list[dict[str, object]] = [
    {},
    LONG_AGO,
    {"end": "2020-01-01T00:00:00Z"},
    {"start": "2300-01-01T00:00:00Z"},
    {"start": "2300-01-01T00:00:00Z", "end": "2250-01-01T00:00:00Z"},
    {"start": None},
    {"end": None},
    {"start": "1960-01-01T00:00:00Z"},
    *({"timezone": zone} for zone in ("Nowhere/Else", "Europe/Paris", None)),
    *({"gap": gap} for gap in ("skip", "next_valid", None)),
    *({"twice": twice} for twice in ("first", "both", None)),
    *({kind: None} for kind in CALENDARS),
    *({"cron": text} for text in ("99 * * * *", "0 0 30 2 *", "* * *", "0 0 1 1 *", "x" * 300)),
    {"cron": "0 0 * * *", "end": "2020-01-01T00:00:00Z"},
    {"cron": "0 0 * * *", "every": 60},
    *({"rrule": rule} for rule in ("FREQ=NEVER", "FREQ=DAILY;UNTIL=20200101T000000Z", "")),
    {"rrule": "FREQ=DAILY", "start": None},
    *({"every": seconds} for seconds in (0.5, -1, 1e12)),
    {"every": 60, "gap": "skip"},
    {"at": "2020-01-01T00:00:00Z"},
    {"at": "1960-01-01T00:00:00Z"},
    {"at": "2020-01-01T00:00:00Z", "timezone": "UTC"},
    *({name: number} for name in ("max_runs", "hold_after") for number in (0, None)),
    *({name: number} for name in ("keep_succeeded", "keep_failed") for number in (-1, 20_000)),
    *({name: number} for name in ("window", "jitter", "timeout") for number in (-1, 1e15, None)),
    *({"tags": tags} for tags in (["y" * 65], [str(number) for number in range(21)], None)),
    *({"queue": queue} for queue in ("", "y" * 65, None)),
    *({"metadata": {"y": "y" * size}} for size in (40_000, 70_000)),
    *({"retry": retry} for retry in ({"max_attempts": 0}, {"delays": [1], "fixed": 2}, None)),
    {"retry": {"delays": [-1]}},
    *({"type": name} for name in ("ship", "nobody", "")),
    *({"arguments": given} for given in ({}, {"order_id": 5}, {"other": 1})),
    {"arguments": {"order_id": "o"}, "metadata": {"y": "y" * 65_536}},
]


@pytest.mark.parametrize("kind", CALENDARS)
async def test_no_change_of_a_schedule_makes_the_service_quote_what_is_stored(scene, kind):
    await scene.publish("ship", schema={"required": ["number"], "additionalProperties": False})
    bounds = {} if kind == "at" else BOUNDS
    body = {"id": "nightly", **STORED, **CALENDARS[kind], **bounds}
    told = []
    for change in CHANGES:
        scene.become(OWNER)
        await scene.call("DELETE", "/v1/schedules/nightly")
        put = await scene.call("POST", "/v1/schedules", send=body)
        assert put.status == 201, put.body
        scene.become(WRITER)
        answer = await scene.call("PATCH", "/v1/schedules/nightly", send=change)
        assert answer.status in {200, 413, 422}, answer.body
        said = json.dumps({**answer.json, "next_run": None})
        told += [(change, canary, said) for canary in CANARIES if canary in said]
    assert told == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cron": "99 * * * *"}, "99"),
        ({"timezone": "Nowhere/Else"}, "Nowhere/Else"),
        ({"start": "2300-01-01T00:00:00Z", "end": "2250-01-01T00:00:00Z"}, "2250-01-01"),
        ({"rrule": "FREQ=NEVER"}, "NEVER"),
        ({"max_runs": 0}, "max_runs"),
        ({"tags": ["y" * 65]}, "65 characters"),
        ({"metadata": {"y": "y" * 70_000}}, "metadata"),
        ({"arguments": {"order_id": 5}}, "arguments.order_id"),
        ({"retry": {"max_attempts": 0}}, "max_attempts"),
    ],
)
async def test_what_is_wrong_with_a_change_by_itself_is_told_in_full(scene, change, words):
    await scene.put(**{name: value for name, value in STORED.items() if name != "type"})
    scene.become(WRITER)
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send=change)
    assert answer.status in {413, 422}
    assert words in answer.json["detail"]


async def test_a_change_that_does_not_fit_what_is_stored_says_so_and_what_to_do(scene):
    await scene.put(**CALENDARS["cron"], start=BOUNDS["start"])
    scene.become(WRITER)
    change = {"end": "2020-01-01T00:00:00Z"}
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send=change)
    assert (answer.status, answer.code) == (422, "invalid-option")
    assert "does not fit" in answer.json["detail"]
    assert "schedules:read" in answer.json["hint"]
    scene.become(READER)
    answer = await scene.call("PATCH", "/v1/schedules/nightly", send=change)
    assert "2231-03-07" in answer.json["detail"]


async def test_a_change_that_would_fire_too_often_tells_how_often_only_with_the_read_scope(make):
    made = make(http_schedule_interval=100_000.0)
    await made.publish("charge")
    await made.put(tenant="acme", every=77_777)
    for principal, told in ((WRITER, False), (READER, True)):
        made.become(dataclasses.replace(principal, tenant="acme"))
        answer = await made.call("PATCH", "/v1/schedules/nightly", send={"max_runs": 5})
        assert (answer.status, answer.code) == (422, "too-frequent")
        assert (b"77777" in answer.body) == told
    made.become(dataclasses.replace(WRITER, tenant="acme"))
    answer = await made.call("PATCH", "/v1/schedules/nightly", send={"every": 60})
    assert "60 s" in answer.json["detail"]


async def test_a_refused_trigger_names_the_overlap_policy_only_with_the_read_scope(scene):
    await scene.put(overlap="skip")
    await scene.call("POST", "/v1/schedules/nightly/trigger")
    for principal, told in ((WRITER, False), (READER, True)):
        scene.become(principal)
        answer = await scene.call("POST", "/v1/schedules/nightly/trigger")
        assert (answer.status, answer.code) == (409, "wrong-state")
        assert (b"skip" in answer.body) == told


@pytest.mark.parametrize(
    ("method", "action"),
    [("POST", "/retry"), ("POST", "/replay"), ("POST", "/hold"), ("DELETE", "")],
)
async def test_operating_a_job_shows_its_content_only_with_the_read_scope(scene, method, action):
    job_id = await scene.submit()
    claim = await scene.claim()
    if action == "/replay":
        await scene.succeed(claim, b'"%b"' % CONTENT.encode())
    else:
        await scene.engine()
        await scene.retry_later(claim, CONTENT)
    scene.become(WRITER)
    answer = await scene.call(method, f"/v1/jobs/{job_id}{action}")
    assert answer.status in {200, 202}, answer.body
    assert CONTENT.encode() not in answer.body
    assert [answer.json[name] for name in ("result", "reason", "error")] == [None] * 3
    assert answer.json["id"] == job_id
    assert answer.json["status"]


async def test_the_read_scope_shows_why_a_job_that_was_operated_had_failed(scene):
    job_id = await scene.submit()
    await scene.retry_later(await scene.claim(), CONTENT)
    scene.become(READER)
    answer = await scene.call("POST", f"/v1/jobs/{job_id}/hold")
    assert answer.json["error"]["message"] == CONTENT


@pytest.fixture
async def held(scene):
    """Give a scene where operators hold a queue and a type for reasons of their own."""
    settings = (await scene.engine()).settings
    await settings.put_queue(
        "payments", QueueSettings(held=True), by="root@db7", reason="breach at bigcorp"
    )
    await settings.put_type(
        "charge", TypeSettings(held=True), by="root@db7", reason="breach at bigcorp"
    )
    return scene


async def test_why_tells_a_tenant_that_something_is_held_and_not_by_whom_or_why(held):
    job_id = await held.submit(tenant="acme")
    held.become(TENANT)
    answer = await held.call("GET", f"/v1/jobs/{job_id}/why")
    reasons = {each["why"]: each for each in answer.json["reasons"]}
    assert reasons["held_queue"]["text"] == "its queue `payments` is held"
    assert reasons["held_type"]["text"] == "its type `charge` is held"
    assert [reasons[why]["note"] for why in ("held_queue", "held_type")] == [None, None]
    assert b"bigcorp" not in answer.body
    assert b"db7" not in answer.body


async def test_why_tells_an_operator_of_all_tenants_everything(held):
    job_id = await held.submit(tenant="acme")
    answer = await held.call("GET", f"/v1/jobs/{job_id}/why")
    assert answer.json["reasons"][0]["note"]["reason"] == "breach at bigcorp"


async def test_a_hold_of_the_tenants_own_job_is_told_in_full(scene):
    job_id = await scene.submit(tenant="acme")
    scene.become(TENANT)
    await scene.call("POST", f"/v1/jobs/{job_id}/hold?reason=audit")
    answer = await scene.call("GET", f"/v1/jobs/{job_id}/why")
    assert answer.json["reasons"][0]["note"]["reason"] == "audit"


async def test_a_tenant_learns_no_worker_and_no_host(scene):
    running = await scene.submit(tenant="acme")
    await scene.claim()
    waiting = await scene.submit(tenant="acme")
    scene.become(TENANT)
    for path in (f"{running}/why", f"{waiting}/why", f"{running}/attempts"):
        answer = await scene.call("GET", f"/v1/jobs/{path}")
        assert answer.status == 200
        assert b"w-1" not in answer.body, path
        assert b'"count":1' not in answer.body, path
    (attempt,) = (await scene.call("GET", f"/v1/jobs/{running}/attempts")).json["attempts"]
    assert attempt["worker"] == ""
    assert attempt["outcome"] == "running"


@pytest.fixture
async def signed(scene):
    """Give a scene where an operator, on a machine of theirs, holds all that a tenant has."""
    waiting, ended = [await scene.submit(tenant="acme") for _ in range(2)]
    await scene.put(tenant="acme")
    engine = await scene.engine()
    mark = {"by": "root@db7", "reason": "unpaid"}
    await engine.jobs.hold([waiting], **mark)
    await engine.jobs.cancel([ended], **mark)
    await engine.schedules.hold_schedules(["nightly"], **mark, tenant="acme")
    await engine.settings.put_tenant("acme", TenantSettings(held=True), **mark)
    about = [About("nightly", "acme")]
    await engine.access.note_audit(entries_of(about, action="schedule.hold", **mark))
    scene.ids = waiting, ended
    return scene


async def test_a_tenant_learns_who_holds_what_it_has_and_not_on_which_host(signed):
    waiting, ended = signed.ids
    places = {
        f"/v1/jobs/{waiting}/why": 2,
        f"/v1/jobs/{waiting}/input": 1,
        f"/v1/jobs/{ended}/input": 1,
        "/v1/tenants/acme": 1,
        "/v1/schedules/nightly": 1,
        "/v1/schedules": 1,
        "/v1/audit": 1,
    }
    for path, signatures in places.items():
        signed.become(dataclasses.replace(TENANT, scopes=granted(["admin"])))
        answer = await signed.call("GET", path)
        assert answer.status == 200, answer.body
        assert b"db7" not in answer.body, path
        assert answer.body.count(b'"by":"root"') == signatures, path
        assert b"unpaid" in answer.body, path
        signed.become(dataclasses.replace(TENANT, scopes=granted(["admin"]), tenant=None))
        whose = "?tenant=acme" if path == "/v1/schedules/nightly" else ""
        answer = await signed.call("GET", path + whose)
        assert answer.body.count(b'"by":"root@db7"') == signatures, path


async def test_why_tells_a_tenant_what_is_held_in_words_without_a_host(signed):
    signed.become(TENANT)
    answer = await signed.call("GET", f"/v1/jobs/{signed.ids[0]}/why")
    assert [reason["text"] for reason in answer.json["reasons"][:2]] == [
        "the job itself is held by root: unpaid",
        "its tenant `acme` is held by root: unpaid",
    ]


async def test_changes_answer_a_tenant_without_a_host(signed):
    signed.become(dataclasses.replace(TENANT, scopes=granted(["admin"])))
    answer = await signed.call("PATCH", "/v1/schedules/nightly", send={"max_runs": 5})
    assert answer.json["hold"]["by"] == "root"


async def test_a_tenant_finds_its_own_name_as_it_is(scene):
    job_id = await scene.submit(tenant="acme")
    scene.become(dataclasses.replace(TENANT, name="ada@https://login.example"))
    await scene.call("POST", f"/v1/jobs/{job_id}/hold")
    answer = await scene.call("GET", f"/v1/jobs/{job_id}/input")
    assert answer.json["hold"]["by"] == "ada@https://login.example"


SCRAPED = [
    "/metrics",
    "/v1/workers",
    "/v1/queues",
    "/v1/queues/payments",
    "/v1/overview",
    "/v1/stats",
    "/v1/tenants",
]


@pytest.mark.parametrize("path", SCRAPED)
async def test_a_scraper_reads_what_operators_see_of_the_fleet(scene, path):
    await scene.submit()
    scene.become(Principal(name="scraper", scopes=granted(["operator:read"])))
    assert (await scene.call("GET", path)).status == 200


async def test_a_scraper_reads_no_job_and_changes_nothing(scene):
    job_id = await scene.submit()
    scene.become(Principal(name="scraper", scopes=granted(["operator:read"])))
    refused = [
        ("GET", "/v1/jobs", None),
        ("GET", f"/v1/jobs/{job_id}", None),
        ("GET", f"/v1/jobs/{job_id}/why", None),
        ("GET", f"/v1/jobs/{job_id}/attempts", None),
        ("GET", "/v1/dlq", None),
        ("GET", "/v1/schedules", None),
        ("PUT", "/v1/queues/payments", {"held": True}),
        ("PUT", "/v1/tenants/default", {"weight": 2}),
        ("POST", "/v1/jobs", {"type": "charge"}),
    ]
    for method, path, body in refused:
        assert (await scene.call(method, path, send=body)).code == "forbidden", path


def test_operators_and_admins_may_read_what_scrapers_read():
    for scope in (Scope.OPERATOR, Scope.ADMIN):
        assert "operator:read" in granted([scope.value])
    assert granted(["operator:read"]) == {"operator:read"}
