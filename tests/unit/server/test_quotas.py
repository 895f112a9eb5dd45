"""A tenant's own tokens bring so much into the store, and no more."""

import asyncio

import pytest

from lamplighter.server import quotas, remembered
from lamplighter.server.auth import Principal

SHOP, MALL = Principal(name="shop-1", tenant="shop"), Principal(name="mall-1", tenant="mall")
OPERATOR = Principal(name="operator")
JOB = {"type": "charge", "arguments": {"order_id": "A-1"}, "delay": 60}
DAILY = {"type": "charge", "arguments": {"order_id": "A-1"}, "cron": "0 3 * * *"}


@pytest.fixture
async def scene(make, clock):
    made = make(http_tenant_waiting=3, http_tenant_schedules=2, http_schedule_interval=3600.0)
    await made.publish("charge")
    made.become(SHOP)
    return made


async def batch(scene, count):
    return await scene.call("POST", "/v1/jobs:batch", send=[JOB] * count)


async def waiting(scene):
    return (await (await scene.engine()).inspector.counts())["waiting"]


async def test_a_tenant_has_so_many_jobs_waiting(scene):
    answers = [await scene.call("POST", "/v1/jobs", send=JOB) for _ in range(4)]
    assert [each.status for each in answers] == [201, 201, 201, 429]
    assert answers[3].code == "tenant-full"
    assert "3 jobs waiting, and may have 3" in answers[3].json["detail"]
    assert answers[3].headers["retry-after"] == "5"
    assert await waiting(scene) == 3


async def test_a_batch_that_is_too_large_is_refused_as_a_whole(scene):
    assert (await batch(scene, 2)).status == 200
    assert (await batch(scene, 2)).code == "tenant-full"
    assert await waiting(scene) == 2
    assert (await batch(scene, 1)).status == 200


async def test_many_at_once_do_not_slip_through(scene):
    calls = (scene.call("POST", "/v1/jobs", send=JOB) for _ in range(20))
    answers = await asyncio.gather(*calls)
    assert sorted(each.status for each in answers) == [201] * 3 + [429] * 17
    assert await waiting(scene) == 3


async def test_there_is_room_again_when_a_job_is_gone(scene, clock):
    answer = await scene.call("POST", "/v1/jobs", send=JOB)
    await batch(scene, 2)
    await scene.call("DELETE", f"/v1/jobs/{answer.json['id']}")
    assert (await batch(scene, 1)).status == 429
    clock.later += quotas.FRESH
    assert (await batch(scene, 1)).status == 200
    assert (await batch(scene, 1)).status == 429


async def test_one_job_and_one_schedule_are_not_told_as_several(make):
    scene = make(http_tenant_waiting=1, http_tenant_schedules=1)
    await scene.publish("charge")
    scene.become(SHOP)
    await batch(scene, 1)
    told = (await batch(scene, 1)).json["detail"]
    assert "1 job waiting, and may have 1: 1 more is too many" in told
    answers = [
        await scene.call("POST", "/v1/schedules", send={**DAILY, "id": each}) for each in "ab"
    ]
    assert "1 schedule, and may have 1" in answers[1].json["detail"]


async def test_others_have_limits_of_their_own_or_none(scene):
    await batch(scene, 3)
    scene.become(MALL)
    assert (await batch(scene, 3)).status == 200
    scene.become(OPERATOR)
    assert (await batch(scene, 20)).status == 200
    job = {**JOB, "tenant": "shop"}
    assert (await scene.call("POST", "/v1/jobs", send=job)).status == 201


async def test_a_trigger_is_a_job_too(scene):
    await scene.call("POST", "/v1/schedules", send={**DAILY, "id": "s", "overlap": "allow"})
    answers = [await scene.call("POST", "/v1/schedules/s/trigger") for _ in range(4)]
    assert [each.status for each in answers] == [200, 200, 200, 429]
    assert answers[3].code == "tenant-full"


async def test_many_schedules_at_once_do_not_slip_through(scene):
    calls = (
        scene.call("POST", "/v1/schedules", send={**DAILY, "id": f"s-{number}"})
        for number in range(20)
    )
    answers = await asyncio.gather(*calls)
    assert sorted(each.status for each in answers) == [201] * 2 + [429] * 18


async def test_what_is_refused_takes_no_room_for_queue_names_from_others(make):
    scene = make(http_tenant_waiting=1, http_queues=4)
    await scene.publish("charge")
    scene.become(SHOP)
    assert (await scene.call("POST", "/v1/jobs", send=JOB)).status == 201
    for number in range(6):
        job = {**JOB, "queue": f"q-{number}"}
        assert (await scene.call("POST", "/v1/jobs", send=job)).code == "tenant-full"
        assert (await scene.call("POST", "/v1/jobs:batch", send=[job])).code == "tenant-full"
    scene.become(MALL)
    assert (await scene.call("POST", "/v1/jobs", send={**JOB, "queue": "mine"})).status == 201


async def test_a_tenant_has_so_many_schedules_and_may_change_each(scene, clock):
    for number in range(2):
        answer = await scene.call("POST", "/v1/schedules", send={**DAILY, "id": f"s-{number}"})
        assert answer.status == 201
    refused = await scene.call("POST", "/v1/schedules", send={**DAILY, "id": "s-2"})
    assert (refused.status, refused.code) == (429, "tenant-full")
    assert "2 schedules, and may have 2" in refused.json["detail"]
    by_job = {**JOB, "schedule": {"cron": "0 3 * * *"}}
    del by_job["delay"]
    assert (await scene.call("POST", "/v1/jobs", send=by_job)).code == "tenant-full"
    changed = {**DAILY, "id": "s-1", "cron": "0 4 * * *"}
    assert (await scene.call("POST", "/v1/schedules", send=changed)).json["answer"] == "changed"
    assert (
        await scene.call("PATCH", "/v1/schedules/s-0", send={"cron": "5 4 * * *"})
    ).status == 200
    scene.become(MALL)
    assert (await scene.call("POST", "/v1/schedules", send={**DAILY, "id": "m"})).status == 201
    scene.become(SHOP)
    await scene.call("DELETE", "/v1/schedules/s-0")
    clock.later += quotas.FRESH_SCHEDULES
    assert (await scene.call("POST", "/v1/schedules", send={**DAILY, "id": "s-2"})).status == 201


@pytest.mark.parametrize(
    "times", [{"cron": "*/30 * * * *"}, {"cron": "0,1 3 * * *"}, {"every": 60}]
)
async def test_schedules_of_a_tenant_do_not_fire_too_often(scene, times):
    body = {name: value for name, value in DAILY.items() if name != "cron"} | times
    for path in ("/v1/schedules", "/v1/schedules:preview"):
        refused = await scene.call("POST", path, send={**body, "id": "often"})
        assert (refused.status, refused.code) == (422, "too-frequent"), path
        assert "3600 s" in refused.json["detail"]
    assert (await scene.call("POST", "/v1/schedules", send={**DAILY, "id": "s"})).status == 201
    assert (await scene.call("PATCH", "/v1/schedules/s", send=times)).code == "too-frequent"
    scene.become(OPERATOR)
    assert (await scene.call("POST", "/v1/schedules", send={**body, "id": "often"})).status == 201


async def test_so_many_tenants_are_remembered_and_no_more(scene, monkeypatch):
    monkeypatch.setattr(remembered, "MOST", 5)
    for number in range(8):
        scene.become(Principal(name="x", tenant=f"t-{number}"))
        await batch(scene, 1)
    assert list(scene.service.quotas._waiting._known) == [f"t-{number}" for number in range(3, 8)]


async def test_holding_jobs_makes_no_room_for_others(scene, clock):
    for _ in range(3):
        made = await scene.call("POST", "/v1/jobs", send=JOB)
        assert (await scene.call("POST", f"/v1/jobs/{made.json['id']}/hold")).status == 200
    clock.later += quotas.FRESH
    assert (await batch(scene, 1)).code == "tenant-full"
    assert (await scene.call("POST", f"/v1/jobs/{made.json['id']}/unhold")).status == 200
    clock.later += quotas.FRESH
    assert (await batch(scene, 1)).code == "tenant-full"


async def test_what_has_ended_comes_back_only_where_there_is_room(scene, clock):
    due = {**JOB, "delay": 0}
    first = (await scene.call("POST", "/v1/jobs", send=due)).json["id"]
    await scene.fail(await scene.claim())
    assert (await batch(scene, 3)).status == 429
    clock.later += quotas.FRESH
    assert (await batch(scene, 3)).status == 200
    for verb in ("retry", "replay"):
        assert (await scene.call("POST", f"/v1/jobs/{first}/{verb}")).code == "tenant-full"
        answer = await scene.call("POST", f"/v1/dlq:{verb}", send={"all": True})
        assert answer.code == "tenant-full"
    assert await waiting(scene) == 3


@pytest.fixture
async def queues(make, clock):
    made = make(http_tenant_queues=2)
    await made.publish("charge")
    made.become(SHOP)
    return made


def in_queue(name):
    return {"type": "charge", "arguments": {"order_id": "A-1"}, "queue": name}


async def test_a_tenant_brings_so_many_names_of_queues(queues, make, clock):
    for name in ("a", "b", "a", "payments"):
        assert (await queues.call("POST", "/v1/jobs", send=in_queue(name))).status == 201
    refused = await queues.call("POST", "/v1/jobs", send=in_queue("c"))
    assert refused.code == "too-many-queues"
    assert "http_tenant_queues" in refused.json["hint"]
    several = [in_queue("d"), in_queue("e"), in_queue("f")]
    assert (await queues.call("POST", "/v1/jobs:batch", send=several)).code == "too-many-queues"
    daily = {**DAILY, "id": "s", "queue": "g"}
    assert (await queues.call("POST", "/v1/schedules", send=daily)).code == "too-many-queues"
    # Other processes and other tenants: the former know, the latter are not touched.
    other = make(http_tenant_queues=2)
    other.become(SHOP)
    assert (await other.call("POST", "/v1/jobs", send=in_queue("c"))).code == "too-many-queues"
    other.become(MALL)
    assert (await other.call("POST", "/v1/jobs", send=in_queue("c"))).status == 201


async def test_an_operator_makes_room_again(queues, clock):
    ids = [
        (await queues.call("POST", "/v1/jobs", send={**in_queue(name), "delay": 60})).json["id"]
        for name in ("a", "b")
    ]
    queues.become(OPERATOR)
    busy = await queues.call("DELETE", "/v1/queues/a")
    assert (busy.status, busy.code) == (409, "wrong-state")
    assert (await queues.call("DELETE", "/v1/queues/payments")).code == "wrong-state"
    await queues.call("DELETE", f"/v1/jobs/{ids[0]}")
    answer = await queues.call("DELETE", "/v1/queues/a?reason=tidy")
    assert (answer.status, answer.json) == (200, {"name": "a", "answer": "done"})
    assert (await queues.call("GET", "/v1/queues/a")).code == "unknown-name"
    assert (await queues.call("DELETE", "/v1/queues/a")).json["answer"] == "already"
    assert (await queues.call("DELETE", "/v1/queues/never")).code == "unknown-name"
    (entry, *_) = (await (await queues.engine()).access.audit(limit=5)).records[1:]
    assert (entry.entry.action, entry.entry.reason) == ("queues.remove", "tidy")
    queues.become(SHOP)
    assert (await queues.call("POST", "/v1/jobs", send=in_queue("c"))).status == 201
