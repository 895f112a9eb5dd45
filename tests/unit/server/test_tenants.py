"""Tenants: who has jobs, and setting their shares."""

import pytest

from lamplighter.port.store import queue_topic
from lamplighter.port.values import TenantSettings
from lamplighter.server.auth import Principal

HERE = "/v1/tenants/acme"


async def test_tenants_are_listed_with_what_they_have(scene):
    await scene.submit(tenant="acme")
    await scene.submit()
    await scene.claim()
    found = (await scene.call("GET", "/v1/tenants")).json["tenants"]
    assert [each["name"] for each in found] == ["acme", "default"]
    assert sum(each["waiting"] for each in found) == 1
    assert sum(each["running"] for each in found) == 1
    assert (await scene.call("GET", HERE)).json == found[0]


@pytest.mark.parametrize("name", ["nobody", "%00", "x" * 65])
async def test_a_tenant_without_jobs_and_settings_is_not_found(scene, name):
    response = await scene.call("GET", f"/v1/tenants/{name}")
    assert (response.status, response.code) == (404, "unknown-name")


async def test_a_tenant_is_given_a_weight_and_held(scene):
    job_id = await scene.submit(tenant="acme")
    assert (await scene.call("PUT", HERE, send={"weight": 3})).json["weight"] == 3
    held = (await scene.call("PUT", f"{HERE}?reason=unpaid", send={"held": True})).json
    assert (held["weight"], held["held"], held["hold"]["reason"]) == (3, True, "unpaid")
    why = (await scene.call("GET", f"/v1/jobs/{job_id}/why")).json
    assert why["reasons"][0]["why"] == "held_tenant"
    free = (await scene.call("PUT", HERE, send={"held": False})).json
    assert (free["weight"], free["held"]) == (3, False)
    assert (await scene.claim()).job.id == job_id


async def test_a_tenant_that_may_go_on_wakes_workers_without_a_look_at_all_queues(scene, calls):
    await scene.submit(tenant="acme", queue="elsewhere")
    await scene.call("PUT", HERE, send={"held": True})
    wakeup = (await scene.service.client.engine()).wakeup
    served, other = [queue_topic("payments")], [queue_topic("elsewhere")]
    for topics in (served, other):
        while await wakeup.wait(topics, 0.0):
            pass
    assert (await scene.call("PUT", HERE, send={"held": False})).status == 200
    assert await wakeup.wait(served, 10.0)
    assert not await wakeup.wait(other, 0.0)
    assert calls["queues"] <= 1  # the one for the first job in a new queue


async def test_a_tenant_beyond_those_that_are_listed_is_seen_and_set(scene):
    engine = await scene.engine()
    for number in range(1_000):
        name = f"t{number:04d}"
        await engine.settings.put_tenant(name, TenantSettings(weight=2), by="x", reason="")
    path = "/v1/tenants/zzz"
    assert (await scene.call("GET", path)).code == "unknown-name"
    held = (await scene.call("PUT", path, send={"held": True})).json
    assert (held["weight"], held["held"]) == (1, True)
    assert (await scene.call("GET", path)).json == held


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("acme", {}, "invalid-option"),
        ("acme", {"weight": 0}, "invalid-body"),
        ("acme", {"weight": 1001}, "invalid-body"),
        ("acme", {"weight": 1.5}, "invalid-body"),
        ("acme", {"max_wait_seconds": 5}, "invalid-body"),
        ("%00", {"held": True}, "invalid-name"),
    ],
)
async def test_what_cannot_be_set_is_refused(scene, name, body, code):
    response = await scene.call("PUT", f"/v1/tenants/{name}", send=body)
    assert (response.status, response.code) == (422, code)
    assert (await scene.call("GET", "/v1/tenants")).json["tenants"] == []


async def test_whoever_has_one_tenant_sees_it_alone_and_sets_no_shares(scene):
    await scene.submit(tenant="acme")
    await scene.submit(tenant="other")
    scene.become(Principal(name="a", tenant="acme"))
    assert (await scene.call("GET", "/v1/tenants")).code == "forbidden"
    assert (await scene.call("GET", HERE)).json["name"] == "acme"
    assert (await scene.call("GET", "/v1/tenants/other")).code == "unknown-name"
    for name in ("acme", "other"):
        response = await scene.call("PUT", f"/v1/tenants/{name}", send={"weight": 1000})
        assert (response.status, response.code) == (403, "forbidden")
