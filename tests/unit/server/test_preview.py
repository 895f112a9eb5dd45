"""Schedules that are looked at before they are stored."""

import pytest

from lamplighter.server.auth import Principal, Scope

PREVIEW = "/v1/schedules:preview"
BERLIN = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
CHARGE = {"type": "charge", "arguments": {"order_id": "o-1"}}


async def preview(scene, body: dict, query: str = "count=3&after=2030-03-30T00:00:00Z") -> dict:
    response = await scene.call("POST", f"{PREVIEW}?{query}", send=body)
    assert response.status == 200, response.body
    return response.json


async def test_it_tells_what_the_stored_one_will_tell(scene):
    body = {**CHARGE, **BERLIN, "id": "nightly", "jitter": 600}
    found = await preview(scene, body)
    assert [each["mark"] for each in found["runs"]] == [None, "moved out of a gap", None]
    assert found["runs"][1]["local"] == "2030-03-31T03:00:00+02:00"
    assert (await scene.call("GET", "/v1/schedules")).json["schedules"] == []
    await scene.call("POST", "/v1/schedules", send=body)
    path = "/v1/schedules/nightly"
    stored = (await scene.call("GET", f"{path}/preview?count=3&after=2030-03-30T00:00:00Z")).json
    for name in ("runs", "shift", "clocks"):
        assert found[name] == stored[name]
    spec = (await scene.call("GET", path)).json["spec"]
    assert (found["description"], found["shift"]) == (spec["description"], spec["shift"])


@pytest.mark.parametrize(
    ("more", "after", "effect", "wall"),
    [
        ({}, "2030-01-01", "moved", "2030-03-31T02:30:00"),
        ({"gap": "skip"}, "2030-01-01", "skipped", "2030-03-31T02:30:00"),
        ({}, "2030-06-01", "first only", "2030-10-27T02:30:00"),
        ({"twice": "both"}, "2030-06-01", "doubled", "2030-10-27T02:30:00"),
    ],
)
async def test_it_tells_what_the_next_change_of_the_clocks_does(scene, more, after, effect, wall):
    found = await preview(scene, {**BERLIN, **more}, f"after={after}T00:00:00Z")
    assert (found["clocks"]["effect"], found["clocks"]["wall"]) == (effect, wall)
    assert found["clocks"]["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize(
    "body",
    [{"every": 60}, {"cron": "30 2 * * *"}, {**BERLIN, "end": "2030-03-01T00:00:00Z"}],
    ids=["elapsed time", "UTC", "over before"],
)
async def test_not_every_schedule_is_touched_by_the_clocks(scene, body):
    assert (await preview(scene, body, "after=2030-01-01T00:00:00Z"))["clocks"] is None


async def test_bounds_are_kept(scene):
    body = {"every": 60, "start": "2040-01-01T00:00:00Z", "max_runs": 2}
    found = await preview(scene, body, "count=5")
    assert [each["utc"] for each in found["runs"]] == [
        "2040-01-01T00:00:00Z",
        "2040-01-01T00:01:00Z",
    ]
    over = await preview(scene, {"every": 60, "end": "2020-01-01T00:00:00Z"}, "count=5")
    assert over["runs"] == []


async def test_what_the_id_decides_is_not_told_without_one(scene):
    assert (await preview(scene, {**BERLIN, "jitter": 600}))["shift"] is None
    assert (await preview(scene, BERLIN))["shift"] == 0
    drawn = [await preview(scene, {"cron": "H 2 * * *", "id": name}) for name in ("a", "b")]
    assert drawn[0]["runs"] != drawn[1]["runs"]


@pytest.mark.parametrize(
    ("body", "code", "value"),
    [
        ({"cron": "61 2 * * *"}, "invalid-option", "61"),
        ({**BERLIN, "timezone": "Mars/Olympus"}, "invalid-option", "Mars/Olympus"),
        ({"every": 0.5}, "invalid-time", "0.5"),
        ({}, "invalid-option", None),
        ({**BERLIN, "every": 60}, "invalid-option", "cron"),
        ({**BERLIN, "id": "\x00"}, "invalid-name", None),
        ({**BERLIN, "window": -1}, "invalid-time", "-1"),
        ({**BERLIN, "type": "nobody"}, "unknown-type", "nobody"),
        ({**BERLIN, "type": "charge"}, "invalid-arguments", "arguments"),
        ({**BERLIN, **CHARGE, "arguments": {"order_id": 1}}, "invalid-arguments", "order_id"),
    ],
)
async def test_what_could_not_be_put_is_refused_in_the_same_words(scene, body, code, value):
    response = await scene.call("POST", PREVIEW, send=body)
    assert (response.status // 100, response.code) == (4, code)
    assert value is None or value in response.json["value"]
    if "type" in body:
        put = await scene.call("POST", "/v1/schedules", send=body)
        assert (put.status, put.json["detail"]) == (response.status, response.json["detail"])


@pytest.mark.parametrize(
    "query", ["count=0", "count=101", "after=now", "after=1960-01-01T00:00:00Z"]
)
async def test_a_preview_that_cannot_be_is_refused(scene, query):
    response = await scene.call("POST", f"{PREVIEW}?{query}", send=BERLIN)
    assert (response.status, response.code) == (400, "invalid-query")


async def test_reading_schedules_is_enough_and_needed(scene):
    scene.become(Principal(name="reader", scopes=frozenset({Scope.SCHEDULES_READ})))
    await preview(scene, {**CHARGE, **BERLIN})
    scene.become(Principal(name="other", scopes=frozenset({Scope.JOBS_WRITE})))
    response = await scene.call("POST", PREVIEW, send=BERLIN)
    assert (response.status, response.code) == (403, "forbidden")


async def test_a_tenant_foretells_for_itself_only(scene):
    scene.become(Principal(name="a", tenant="a"))
    await preview(scene, {**CHARGE, **BERLIN, "tenant": "a"})
    response = await scene.call("POST", PREVIEW, send={**CHARGE, **BERLIN, "tenant": "b"})
    assert (response.status, response.code) == (403, "forbidden")
