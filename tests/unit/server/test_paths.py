"""Names of any kind in paths: what is percent-encoded is part of a name."""

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.unit.server.conftest import Caller

ODD = {
    "tenant-1/daily": "tenant-1%2Fdaily",
    "a/runs": "a%2Fruns",
    "/": "%2F",
    "a//b/": "a%2F%2Fb%2F",
    "50%": "50%25",
    "a%2Fb": "a%252Fb",
    "ä ö?#": "%C3%A4%20%C3%B6%3F%23",
    "a:b@c": "a:b@c",
}


@pytest.mark.parametrize(("schedule_id", "sent"), ODD.items())
async def test_any_id_can_stand_in_a_path(scene, schedule_id, sent):
    response = await scene.put(schedule_id)
    path = response.headers["location"]
    for address in (path, f"/v1/schedules/{sent}"):
        found = await scene.call("GET", address)
        assert (found.status, found.json["id"]) == (200, schedule_id)
        runs = await scene.call("GET", f"{address}/runs")
        assert runs.json == {"runs": [], "next": None}


async def test_a_slash_that_is_not_encoded_separates(scene):
    await scene.put("a")
    await scene.put("a/runs")
    assert "runs" in (await scene.call("GET", "/v1/schedules/a/runs")).json
    assert (await scene.call("GET", "/v1/schedules/a%2Fruns")).json["id"] == "a/runs"
    response = await scene.call("GET", "/v1/schedules/a/b")
    assert (response.status, response.code) == (404, "unknown-path")


async def test_what_stands_around_a_name_may_be_encoded_too(scene):
    await scene.put("a/b")
    assert (await scene.call("GET", "/v1/%73chedules/a%2Fb")).json["id"] == "a/b"
    body = [{"type": "charge", "arguments": {"order_id": "o"}}]
    assert (await scene.call("POST", "/v1/jobs%3Abatch", send=body)).status == 200


async def test_a_newline_at_the_end_leads_nowhere(scene):
    for path in ("/v1/jobs%0A", "/v1/jobs:batch%0A", "/v1/schedules/a/runs%0A", "/healthz%0A"):
        assert (await scene.call("GET", path)).code == "unknown-path"


async def test_a_mounted_service_finds_the_same_names(scene):
    inner = scene.call._asgi
    await scene.put("a/b")
    call = Caller(Starlette(routes=[Mount("/lamps", app=inner)]))
    assert (await call("GET", "/lamps/v1/schedules/a%2Fb")).json["id"] == "a/b"
    assert (await call("GET", "/lamps/v1/schedules")).json["schedules"][0]["id"] == "a/b"


async def test_names_of_queues_and_tenants_may_have_slashes(scene):
    for kind in ("queues", "tenants"):
        response = await scene.call("PUT", f"/v1/{kind}/eu%2Fwest", send={"held": True})
        assert response.json["name"] == "eu/west"
        assert (await scene.call("GET", f"/v1/{kind}/eu%2Fwest")).json["held"] is True
