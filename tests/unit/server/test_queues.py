"""Queues: looking at one, and setting how it is served."""

import pytest

from lamplighter.port.store import queue_topic
from lamplighter.server.auth import Principal

HERE = "/v1/queues/payments"


async def test_a_queue_shows_what_waits_in_it(scene):
    await scene.submit()
    await scene.submit(delay=60)
    found = (await scene.call("GET", HERE)).json
    assert (found["name"], found["ready"], found["scheduled"]) == ("payments", 1, 1)
    assert (found["max_wait_seconds"], found["held"], found["hold"]) == (60, False, None)
    assert (await scene.call("GET", "/v1/queues")).json["queues"][0]["name"] == "payments"


async def test_what_waits_is_counted_by_priority_due_or_not(scene):
    for priority, delay in (("high", 0), ("low", 0), ("low", 60)):
        await scene.submit(priority=priority, delay=delay)
    found = (await scene.call("GET", HERE)).json
    assert found["waiting_by_priority"] == {"critical": 0, "high": 1, "normal": 0, "low": 2}


@pytest.mark.parametrize("name", ["nobody", "%00", "x" * 65])
async def test_a_queue_without_jobs_and_settings_is_not_found(scene, name):
    response = await scene.call("GET", f"/v1/queues/{name}")
    assert (response.status, response.code) == (404, "unknown-name")


async def test_a_queue_is_held_and_let_go(scene):
    job_id = await scene.submit()
    held = (await scene.call("PUT", f"{HERE}?reason=broken", send={"held": True})).json
    assert held["held"] is True
    assert (held["hold"]["by"], held["hold"]["reason"]) == ("local", "broken")
    why = (await scene.call("GET", f"/v1/jobs/{job_id}/why")).json
    assert why["reasons"][0]["why"] == "held_queue"
    free = (await scene.call("PUT", HERE, send={"held": False})).json
    assert (free["held"], free["hold"]) == (False, None)
    assert (await scene.claim()).job.id == job_id


async def test_who_waits_for_the_queue_is_woken_and_nobody_else(scene):
    await scene.submit()
    await scene.submit(queue="other")
    wakeup = (await scene.engine()).wakeup
    mine, others = queue_topic("payments"), queue_topic("other")
    for topic in (mine, others):
        while await wakeup.wait([topic], 0.01):
            pass  # of the jobs themselves
    await scene.call("PUT", HERE, send={"held": False})
    assert await wakeup.wait([mine], 20)
    assert not await wakeup.wait([others], 0.01)


async def test_only_what_is_given_is_set(scene):
    await scene.call("PUT", HERE, send={"held": True})
    found = (await scene.call("PUT", HERE, send={"max_wait_seconds": 1.5})).json
    assert (found["max_wait_seconds"], found["held"]) == (1.5, True)


async def test_a_queue_can_be_set_before_its_first_job(scene):
    response = await scene.call("PUT", "/v1/queues/new", send={"held": True})
    assert (response.status, response.json["held"]) == (200, True)
    assert (await scene.call("GET", "/v1/queues/new")).json["held"] is True


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("payments", {}, "invalid-option"),
        ("payments", {"max_wait_seconds": 0}, "invalid-time"),
        ("payments", {"max_wait_seconds": -1}, "invalid-time"),
        ("payments", {"max_wait_seconds": "5"}, "invalid-body"),
        ("payments", {"weight": 5}, "invalid-body"),
        ("%00", {"held": True}, "invalid-name"),
        ("x" * 65, {"held": True}, "invalid-name"),
    ],
)
async def test_what_cannot_be_set_is_refused(scene, name, body, code):
    response = await scene.call("PUT", f"/v1/queues/{name}", send=body)
    assert (response.status, response.code) == (422, code)


async def test_whoever_has_one_tenant_does_not_set_what_all_share(scene):
    await scene.submit()
    scene.become(Principal(name="a", tenant="a"))
    response = await scene.call("PUT", HERE, send={"held": True})
    assert (response.status, response.code) == (403, "forbidden")
    assert (await scene.call("GET", HERE)).code == "forbidden"
    scene.become(Principal(name="operator"))
    assert (await scene.call("GET", HERE)).json["held"] is False
