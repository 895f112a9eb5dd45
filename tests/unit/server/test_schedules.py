"""Schedules as a collection: putting and listing them, alone and with a job."""

from threading import get_ident

import pytest

from lamplighter.model.schedule import RRule
from lamplighter.port.schedules import NewSchedule, ScheduleRecord
from lamplighter.server.auth import Principal, Scope

CHARGE = {"type": "charge", "arguments": {"order_id": "o-1"}}
DAILY = {**CHARGE, "cron": "30 2 * * *"}


async def spec(scene, schedule_id: str = "nightly") -> dict:
    return (await scene.call("GET", f"/v1/schedules/{schedule_id}")).json["spec"]


async def test_a_schedule_is_made_once_and_changed_after_that(scene):
    first = await scene.put("nightly")
    assert first.status == 201
    assert first.headers["location"] == "/v1/schedules/nightly"
    assert (first.json["answer"], first.json["version"]) == ("created", 1)
    assert first.json["next_run"].endswith("T02:30:00Z")
    again = await scene.put("nightly")
    assert (again.status, again.json["answer"], again.json["version"]) == (200, "already", 1)
    changed = await scene.put("nightly", cron="45 2 * * *")
    assert (changed.status, changed.json["answer"], changed.json["version"]) == (200, "changed", 2)


async def test_without_an_id_one_is_drawn(scene):
    ids = set()
    for _ in range(2):
        response = await scene.call("POST", "/v1/schedules", send=DAILY)
        assert response.status == 201
        ids.add(response.json["id"])
    assert len(ids) == 2
    for schedule_id in ids:
        assert (await scene.call("GET", f"/v1/schedules/{schedule_id}")).status == 200


@pytest.mark.parametrize(
    ("when", "calendar"),
    [
        (
            {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "gap": "skip", "twice": "both"},
            {
                "kind": "cron",
                "expression": "30 2 * * *",
                "timezone": "Europe/Berlin",
                "gap": "skip",
                "overlap": "both",
            },
        ),
        ({"every": 900}, {"kind": "interval", "every": 900, "anchor": "1970-01-01T00:00:00+00:00"}),
        (
            {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "start": "2030-01-31T12:00:00Z"},
            {
                "kind": "rrule",
                "text": "FREQ=MONTHLY;BYDAY=-1FR",
                "start": "2030-01-31T12:00:00+00:00",
                "timezone": "UTC",
                "gap": "next_valid",
                "overlap": "first",
            },
        ),
        (
            {"at": "2040-01-31T12:00:00+02:00"},
            {"kind": "once", "at": "2040-01-31T10:00:00+00:00"},
        ),
    ],
)
async def test_every_kind_of_calendar_can_be_said(scene, when, calendar):
    response = await scene.call("POST", "/v1/schedules", send={**CHARGE, "id": "nightly", **when})
    assert response.status == 201, response.body
    assert response.json["next_run"]
    assert (await spec(scene))["calendar"] == calendar


async def test_everything_about_a_schedule_is_kept(scene):
    given = {
        "queue": "slow",
        "priority": "low",
        "timeout": 30.0,
        "tags": ["eu"],
        "metadata": {"source": "http"},
        "overlap": "queue_one",
        "catch_up": "all",
        "window": 60.0,
        "jitter": 10.0,
        "start": "2030-01-31T00:00:00Z",
        "end": "2040-01-31T00:00:00Z",
        "max_runs": 7,
        "hold_after": 3,
        "keep_succeeded": 5,
        "keep_failed": 6,
    }
    await scene.put("nightly", tenant="acme", retry={"delays": [1, 2]}, **given)
    found = (await scene.call("GET", "/v1/schedules/nightly?tenant=acme")).json
    assert {name: found["spec"][name] for name in given} == given
    assert found["spec"]["arguments"] == {"order_id": "o-1"}
    assert found["tenant"] == "acme"
    record = await (await scene.engine()).schedules.schedule("nightly", tenant="acme")
    assert "delays" in record.spec


async def test_the_job_of_a_schedule_has_the_queue_of_its_type(scene):
    await scene.put("nightly")
    assert (await spec(scene))["queue"] == "payments"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"cron": None}, "invalid-option"),
        ({"every": 5}, "invalid-option"),
        ({"cron": "nonsense"}, "invalid-option"),
        ({"timezone": "Mars/Olympus"}, "invalid-option"),
        ({"cron": None, "every": 0.5}, "invalid-time"),
        ({"cron": None, "every": 0}, "invalid-time"),
        ({"cron": None, "every": 60, "timezone": "UTC"}, "invalid-option"),
        ({"cron": None, "rrule": "FREQ=DAILY"}, "invalid-option"),
        ({"cron": None, "at": "2030-01-31T12:00:00"}, "invalid-body"),
        ({"gap": "jump"}, "invalid-body"),
        ({"overlap": "both"}, "invalid-body"),
        ({"max_runs": 0}, "invalid-option"),
        ({"window": -1}, "invalid-time"),
        ({"start": "2030-02-01T00:00:00Z", "end": "2030-01-01T00:00:00Z"}, "invalid-option"),
        # Nothing of it lies between start and end: it would never fire.
        ({"cron": "0 0 31 2 *"}, "invalid-option"),
        (
            {
                "cron": "0 0 29 2 *",
                "start": "2030-01-01T00:00:00Z",
                "end": "2031-01-01T00:00:00Z",
            },
            "invalid-option",
        ),
        ({"id": ""}, "invalid-name"),
        ({"id": "a\nb"}, "invalid-name"),
        ({"id": "x" * 257}, "invalid-name"),
        ({"arguments": {"order_id": 5}}, "invalid-arguments"),
        ({"arguments": {}}, "invalid-arguments"),
        ({"type": "unheard"}, "unknown-type"),
        ({"queue": ""}, "invalid-name"),
        ({"priority": "urgent"}, "invalid-body"),
        ({"delay": 5}, "invalid-body"),
    ],
)
async def test_what_cannot_be_a_schedule_is_refused_before_it_is_stored(scene, more, code):
    response = await scene.call("POST", "/v1/schedules", send={**DAILY, **more})
    assert (response.status, response.code) == (422, code)
    assert (await scene.call("GET", "/v1/schedules")).json["schedules"] == []


async def test_all_schedules_are_listed_page_by_page(scene):
    for number in range(5):
        await scene.put(f"s-{number}")
    seen, cursor = [], ""
    while cursor is not None:
        page = (await scene.call("GET", f"/v1/schedules?limit=2{cursor}")).json
        assert len(page["schedules"]) <= 2
        seen += [found["id"] for found in page["schedules"]]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert seen == [f"s-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a-2", "a-1", "b"]),
        ("prefix=a-", ["a-2", "a-1"]),
        ("tenant=acme", ["a-2"]),
        ("tenant=acme&tenant=default", ["a-2", "a-1", "b"]),
        ("type=charge&held=true", ["b"]),
        ("held=false", ["a-2", "a-1"]),
        ("type=other", []),
    ],
)
async def test_filters_choose(scene, query, found):
    await scene.put("a-1")
    await scene.put("a-2", tenant="acme")
    await scene.put("b")
    await scene.call("POST", "/v1/schedules/b/hold")
    page = (await scene.call("GET", f"/v1/schedules?{query}")).json
    assert [each["id"] for each in page["schedules"]] == found


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("held=maybe", "invalid-query"),
        ("limit=0", "invalid-query"),
        ("type=", "invalid-query"),
        ("prefix=%00", "invalid-query"),
        ("zones=1", "invalid-query"),
        ("cursor=AAAA", "invalid-cursor"),
    ],
)
async def test_a_query_that_cannot_be_used_is_refused(scene, query, code):
    response = await scene.call("GET", f"/v1/schedules?{query}")
    assert (response.status, response.code) == (400, code)


async def test_the_cursor_of_one_filter_does_not_open_another(scene):
    for number in range(3):
        await scene.put(f"s-{number}")
    cursor = (await scene.call("GET", "/v1/schedules?limit=1")).json["next"]
    response = await scene.call("GET", f"/v1/schedules?limit=1&prefix=s&cursor={cursor}")
    assert response.code == "invalid-cursor"


async def test_whoever_has_one_tenant_lists_and_puts_only_there(scene):
    await scene.put("theirs", tenant="b")
    scene.become(Principal(name="a", tenant="a"))
    await scene.put("mine")
    for query in ("", "?tenant=a", "?tenant=a&tenant=b"):
        page = (await scene.call("GET", f"/v1/schedules{query}")).json
        assert [(each["id"], each["tenant"]) for each in page["schedules"]] == [("mine", "a")]
    assert (await scene.call("GET", "/v1/schedules?tenant=b")).json["schedules"] == []
    response = await scene.call("POST", "/v1/schedules", send={**DAILY, "tenant": "b"})
    assert (response.status, response.code) == (403, "forbidden")


async def test_an_id_that_another_tenant_has_is_free_and_tells_nothing(scene):
    await scene.put("shared", tenant="b")
    engine = await scene.engine()
    before = await engine.schedules.schedule("shared", tenant="b")
    scene.become(Principal(name="a", tenant="a"))
    for _ in range(2):  # whether it is there or not
        unknown = await scene.call("GET", "/v1/schedules/shared")
        theirs = await scene.call("GET", "/v1/schedules/shared?tenant=b")
        assert (unknown.status, unknown.code) == (404, "unknown-schedule")
        assert (theirs.status, theirs.json) == (unknown.status, unknown.json)
        await engine.schedules.delete_schedules(["shared"], by="x", reason="", tenant="b")
    await scene.service.schedules.put_many([new_of(before)])
    made = await scene.put("shared")
    assert (made.status, made.json["answer"], made.json["tenant"]) == (201, "created", "a")
    assert made.headers["location"] == "/v1/schedules/shared"
    assert (await scene.call("GET", "/v1/schedules/shared")).json["tenant"] == "a"
    assert (await scene.call("DELETE", "/v1/schedules/shared")).status == 200
    assert (await engine.schedules.schedule("shared", tenant="b")).spec == before.spec


def new_of(record: ScheduleRecord) -> NewSchedule:
    return NewSchedule(
        id=record.id, spec=record.spec, tenant=record.tenant, type=record.type, due_ms=record.due_ms
    )


async def test_an_empty_tenant_names_nobody(scene):
    await scene.put("nightly")
    assert (await scene.call("GET", "/v1/schedules/nightly")).status == 200
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/hold")):
        response = await scene.call(method, f"/v1/schedules/nightly{path}?tenant=")
        assert (response.status, response.code) == (404, "unknown-schedule")


async def test_an_operator_names_the_tenant_of_a_schedule(scene):
    for tenant in ("a", "b"):
        made = await scene.put("shared", tenant=tenant)
        assert made.status == 201
        assert made.headers["location"] == f"/v1/schedules/shared?tenant={tenant}"
        found = (await scene.call("GET", made.headers["location"])).json
        assert (found["id"], found["tenant"]) == ("shared", tenant)
    response = await scene.call("POST", "/v1/schedules/shared/hold?tenant=b&reason=x")
    assert (response.status, response.json["tenant"]) == (200, "b")
    page = (await scene.call("GET", "/v1/schedules")).json
    held = [(each["tenant"], each["hold"] is not None) for each in page["schedules"]]
    assert held == [("a", False), ("b", True)]
    assert (await scene.call("GET", "/v1/schedules/shared")).status == 404
    ran = await scene.call("POST", "/v1/schedules/shared/trigger?tenant=b")
    assert (await scene.call("GET", f"/v1/jobs/{ran.json['job']}")).json["tenant"] == "b"
    for tenant, number in (("a", 0), ("b", 1)):
        runs = (await scene.call("GET", f"/v1/schedules/shared/runs?tenant={tenant}")).json["runs"]
        assert len(runs) == number
        ahead = await scene.call("GET", f"/v1/schedules/shared/preview?tenant={tenant}")
        assert ahead.status == 200
    changed = await scene.call("PATCH", "/v1/schedules/shared?tenant=a", send={"max_runs": 3})
    assert (changed.json["tenant"], changed.json["spec"]["max_runs"]) == ("a", 3)
    moved = await scene.call("PATCH", "/v1/schedules/shared?tenant=a", send={"tenant": "c"})
    assert (moved.status, moved.json["value"]) == (422, "tenant")


# ── with a job ───────────────────────────────────────────────────────────────────────────────


async def test_a_job_with_a_schedule_answers_with_its_id_and_next_run(scene):
    body = {**CHARGE, "queue": "slow", "schedule": {"id": "a/b", "cron": "30 2 * * *"}}
    response = await scene.call("POST", "/v1/jobs", send=body)
    assert (response.status, response.json["id"]) == (201, "a/b")
    assert response.json["answer"] == "created"
    assert response.json["next_run"].endswith("T02:30:00Z")
    assert response.headers["location"] == "/v1/schedules/a%2Fb"
    found = (await scene.call("GET", response.headers["location"])).json
    assert (found["spec"]["queue"], found["spec"]["arguments"]) == ("slow", {"order_id": "o-1"})
    assert (await scene.call("GET", "/v1/jobs")).json["jobs"] == []
    again = await scene.call("POST", "/v1/jobs", send=body)
    assert (again.status, again.json["answer"]) == (200, "already")
    body["schedule"]["cron"] = "45 2 * * *"
    other = await scene.call("POST", "/v1/jobs", send=body)
    assert (other.status, other.json["answer"]) == (200, "changed")


async def test_a_job_without_a_schedule_answers_as_before(scene):
    response = await scene.call("POST", "/v1/jobs", send=CHARGE)
    assert set(response.json) == {"id", "answer"}


@pytest.mark.parametrize(
    ("more", "headers"),
    [
        ({"delay": 5}, {}),
        ({"delay": 0}, {}),
        ({"run_at": "2030-01-31T12:00:00Z"}, {}),
        ({"idempotency_key": "k"}, {}),
        ({}, {"idempotency-key": "k"}),
        ({"schedule": {}}, {}),
    ],
)
async def test_a_job_says_when_in_one_way(scene, more, headers):
    body = {**CHARGE, "schedule": {"every": 60}, **more}
    response = await scene.call("POST", "/v1/jobs", send=body, headers=headers)
    assert (response.status, response.code) == (422, "invalid-option")
    assert (await scene.call("GET", "/v1/schedules")).json["schedules"] == []


async def test_a_batch_takes_no_schedules(scene):
    body = [CHARGE, {**CHARGE, "schedule": {"every": 60}}]
    response = await scene.call("POST", "/v1/jobs:batch", send=body)
    assert (response.status, response.code) == (422, "invalid-option")
    assert response.json["detail"].startswith("jobs[1]:")
    assert (await scene.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_a_job_with_a_schedule_needs_the_scope_of_schedules(scene):
    few = Principal(name="a", scopes=frozenset({Scope.JOBS_WRITE}))
    scene.become(few)
    assert (await scene.call("POST", "/v1/jobs", send=CHARGE)).status == 201
    body = {**CHARGE, "schedule": {"every": 60}}
    response = await scene.call("POST", "/v1/jobs", send=body)
    assert (response.status, response.code) == (403, "forbidden")


# ── what is hard to find ─────────────────────────────────────────────────────────────────────

SPARSE = "FREQ=MINUTELY;INTERVAL=1441;BYHOUR=0;BYMINUTE=0"
NEVER_MET = "FREQ=DAILY;INTERVAL=7;BYDAY=MO"  # it begins with a Thursday


async def test_calendars_are_searched_outside_the_loop(scene, monkeypatch):
    threads = []
    after = RRule._after

    def noted(calendar, at):
        threads.append(get_ident())
        return after(calendar, at)

    monkeypatch.setattr(RRule, "_after", noted)
    rule = {"rrule": SPARSE, "start": "2026-01-01T00:00:00Z", "timezone": "Europe/Berlin"}
    body = {**DAILY, **rule, "id": "sparse"}
    del body["cron"]
    assert (await scene.call("POST", "/v1/schedules:preview?count=100", send=body)).status == 200
    assert (await scene.call("POST", "/v1/schedules", send=body)).status == 201
    assert (await scene.call("GET", "/v1/schedules/sparse/preview?count=100")).status == 200
    assert threads
    assert get_ident() not in threads


async def test_a_calendar_that_is_too_costly_is_refused_with_a_code_of_its_own(scene):
    body = {**DAILY, "rrule": NEVER_MET, "start": "2026-01-01T00:00:00Z"}
    del body["cron"]
    for path in ("/v1/schedules:preview", "/v1/schedules"):
        response = await scene.call("POST", path, send=body)
        assert (response.status, response.code) == (422, "too-costly")
        assert "INTERVAL" in response.json["hint"]
