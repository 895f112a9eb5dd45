"""Every change stands in the audit log before it is answered."""

import asyncio

import pytest

from lamplighter.model.errors import StoreUnreachable
from lamplighter.port import bulk
from lamplighter.server.auth import Principal
from lamplighter.server.routes import TABLE
from tests.unit.server.test_openapi import BODIES

ALICE = Principal(name="alice")
SUBMITS = {"jobs.submit", "jobs.submit_batch"}
"""What is submitted is kept as a job; the log is for what is done to it."""
LOOKS = {"schedules.preview"}
"""Routes that are asked with a body, and change nothing."""
LOGINS = {"session.begin", "session.end"}
"""Noted too, for whoever logs in or out: the tests of sessions say so."""
CHANGES = [
    route for route in TABLE if route.method != "GET" and route.name not in SUBMITS | LOOKS | LOGINS
]


async def entries(scene, query: str = "") -> list[dict]:
    return (await scene.call("GET", f"/v1/audit{query}")).json["entries"]


async def prepared(scene, route) -> str:
    """Make what the route is about; gives its address."""
    if "/schedules" in route.path:
        await scene.put("nightly", tenant="acme")
        if route.path.endswith("/unhold"):
            await scene.call("POST", "/v1/schedules/nightly/hold?tenant=acme")
        return route.path.format(id="nightly")
    job_id = await scene.submit(tenant="acme")
    if route.name == "queues.remove":
        await scene.call("PUT", "/v1/queues/acme", send={"held": False})
    if "dlq" in route.path or route.path.endswith(("/replay", "/erase")):
        await scene.fail(await scene.claim())
    return route.path.format(id=job_id, name="acme")


@pytest.mark.parametrize("route", CHANGES, ids=lambda route: route.name)
async def test_every_change_is_noted_with_who_why_and_what(scene, route):
    target = await prepared(scene, route)
    before = len(await entries(scene))
    scene.become(ALICE)
    body = {**BODIES[route.path]} if route.path in BODIES and route.body is not None else None
    if route.name == "schedules.put":
        body = {**body, "id": "new", "tenant": "acme"}
    if "dlq" in route.path:
        body = {"all": True}
    known = route.query.__struct_fields__
    reasoned = "reason" in known
    query = ["reason=because"] * reasoned + ["tenant=acme"] * ("/schedules/" in target)
    response = await scene.call(route.method, f"{target}?{'&'.join(query)}", send=body)
    assert response.status < 300, response.body
    found = await entries(scene)
    assert len(found) == before + 1
    entry = found[0]
    assert (entry["by"], entry["action"]) == ("alice", route.name)
    reasoned = reasoned or "reason" in (body or {})
    assert entry["reason"] == ("because" if reasoned else "")
    assert entry["tenant"] == (None if "queues" in route.path else "acme")
    assert entry["object"]
    assert entry["answer"]
    assert entry["object"] in target + str(body).replace("'", '"') + "hold {}"


async def test_what_is_refused_is_not_noted(scene):
    job_id = await scene.submit()
    await scene.succeed(await scene.claim())
    assert (await scene.call("DELETE", f"/v1/jobs/{job_id}")).status == 409
    assert (await scene.call("DELETE", "/v1/schedules/none")).status == 404
    assert (await scene.call("PUT", "/v1/queues/q", send={})).status == 422
    assert await entries(scene) == []


async def test_what_is_only_looked_at_is_not_noted(scene):
    await scene.submit()
    await scene.fail(await scene.claim())
    body = {"all": True, "dry_run": True}
    assert (await scene.call("POST", "/v1/dlq:replay", send=body)).status == 200
    await scene.call("GET", "/v1/jobs")
    assert await entries(scene) == []


async def test_a_schedule_made_with_a_job_is_noted(scene):
    body = {**BODIES["/v1/jobs"], "schedule": {"every": 60, "id": "often"}}
    assert (await scene.call("POST", "/v1/jobs", send=body)).status == 201
    (entry,) = await entries(scene)
    assert (entry["action"], entry["object"], entry["answer"]) == (
        "jobs.submit",
        "often",
        "created",
    )


async def test_dead_letters_of_several_tenants_are_noted_for_each(scene):
    for tenant in ("a", "b", "b"):
        await scene.submit(tenant=tenant)
        await scene.fail(await scene.claim())
    await scene.call("POST", "/v1/dlq:purge?reason=old", send={"type": ["charge"]})
    found = {entry["tenant"]: entry for entry in await entries(scene)}
    assert {tenant: entry["answer"] for tenant, entry in found.items()} == {
        "a": "1 done",
        "b": "2 done",
    }
    assert found["a"]["object"] == '{"type":["charge"]}'


async def test_what_is_noted_for_a_tenant_names_no_other(scene):
    for tenant in ("a", "b"):
        await scene.submit(tenant=tenant)
        await scene.fail(await scene.claim())
    await scene.call("POST", "/v1/dlq:purge", send={"tenant": ["a", "b"]})
    found = {entry["tenant"]: entry["object"] for entry in await entries(scene)}
    assert found == {"a": '{"tenant":["a"]}', "b": '{"tenant":["b"]}'}


async def away(*_, **__):
    raise StoreUnreachable("away", hint="come again")


def lost_once(verb):
    """Do it, and lose the first reply."""
    tries = 0

    async def change(*given, **more):
        nonlocal tries
        tries += 1
        answers = await verb(*given, **more)
        if tries == 1:
            raise StoreUnreachable("the reply is lost", hint="ask again")
        return answers

    return change


async def test_a_change_that_cannot_be_noted_is_answered_and_told_to_the_log(
    scene, monkeypatch, caplog
):
    """To ask for it again would make a second job."""
    await scene.put("often", overlap="allow")
    access = (await scene.service.client.engine()).access
    monkeypatch.setattr(access, "note_audit", away)
    assert (await scene.call("POST", "/v1/schedules/often/trigger")).status == 200
    assert "schedule.trigger `often`: done" in caplog.text
    assert len((await scene.call("GET", "/v1/jobs")).json["jobs"]) == 1


async def test_what_is_done_before_the_store_fails_is_noted(scene, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 1)
    for _ in range(2):
        await scene.submit()
        await scene.fail(await scene.claim())
    inspector = (await scene.service.client.engine()).inspector
    jobs, pages = inspector.jobs, []

    async def one_page(*given, **more):
        if pages:
            return await away()
        pages.append(await jobs(*given, **more))
        return pages[0]

    monkeypatch.setattr(inspector, "jobs", one_page)
    response = await scene.call("POST", "/v1/dlq:purge", send={"all": True})
    assert (response.status, response.code) == (503, "store-unreachable")
    (entry,) = await entries(scene)
    assert (entry["action"], entry["answer"]) == ("dlq.purge", "1 done")


async def test_a_change_is_noted_although_the_look_after_it_fails(scene, monkeypatch):
    job_id = await scene.submit()
    engine = await scene.service.client.engine()
    cancel = engine.jobs.cancel

    async def then_away(*given, **more):
        monkeypatch.setattr(engine.inspector, "job", away)
        return await cancel(*given, **more)

    monkeypatch.setattr(engine.jobs, "cancel", then_away)
    assert (await scene.call("DELETE", f"/v1/jobs/{job_id}")).status == 503
    (entry,) = await entries(scene)
    assert (entry["object"], entry["answer"]) == (job_id, "done")


@pytest.mark.parametrize("verb", ["purge", "replay"])
async def test_dead_letters_are_counted_and_noted_although_a_reply_was_lost(
    scene, monkeypatch, verb
):
    await scene.submit()
    await scene.fail(await scene.claim())
    jobs = (await scene.service.client.engine()).jobs
    monkeypatch.setattr(jobs, "change", lost_once(jobs.change))
    response = await scene.call("POST", f"/v1/dlq:{verb}", send={"all": True})
    assert (response.json["done"], response.json["left"]) == (1, 0)
    (entry,) = await entries(scene)
    assert (entry["action"], entry["answer"]) == (f"dlq.{verb}", "1 done")


async def test_a_removed_schedule_is_noted_although_a_reply_was_lost(scene, monkeypatch):
    await scene.put("nightly")
    schedules = (await scene.service.client.engine()).schedules
    lost = lost_once(schedules.delete_schedules)
    monkeypatch.setattr(schedules, "delete_schedules", lost)
    assert (await scene.call("DELETE", "/v1/schedules/nightly")).status == 200
    assert [entry["action"] for entry in await entries(scene)] == [
        "schedule.delete",
        "schedules.put",
    ]


async def test_a_change_whose_request_is_given_up_is_noted_when_it_is_made(make, monkeypatch):
    made = make(http_timeout=0.2)
    await made.publish("charge")
    job_id = await made.submit()
    engine = await made.service.client.engine()
    cancel, note = engine.jobs.cancel, engine.access.note_audit
    free, noted = asyncio.Event(), asyncio.Event()

    async def slow(*given, **more):
        answers = await cancel(*given, **more)
        await free.wait()
        return answers

    async def told(entries):
        await note(entries)
        noted.set()

    monkeypatch.setattr(engine.jobs, "cancel", slow)
    monkeypatch.setattr(engine.access, "note_audit", told)
    response = await made.call("DELETE", f"/v1/jobs/{job_id}")
    assert (response.status, response.code) == (503, "overdue")
    free.set()
    await asyncio.wait_for(noted.wait(), 10)
    (entry,) = await entries(made)
    assert (entry["object"], entry["answer"]) == (job_id, "done")


async def test_a_request_that_is_given_up_does_not_take_its_note_with_it(make, monkeypatch):
    made = make(http_timeout=0.2)
    await made.publish("charge")
    job_id = await made.submit()
    access = (await made.service.client.engine()).access
    note, free, done = access.note_audit, asyncio.Event(), asyncio.Event()

    async def slow(entries):
        await free.wait()
        await note(entries)
        done.set()

    monkeypatch.setattr(access, "note_audit", slow)
    response = await made.call("DELETE", f"/v1/jobs/{job_id}")
    assert (response.status, response.code) == (503, "overdue")
    free.set()
    await done.wait()
    (entry,) = await entries(made)
    assert entry["object"] == job_id


async def test_the_log_is_read_page_by_page_by_those_who_may(scene):
    for number in range(5):
        await scene.call("PUT", f"/v1/queues/q{number}", send={"held": True})
    first = (await scene.call("GET", "/v1/audit?limit=2")).json
    second = (await scene.call("GET", f"/v1/audit?limit=5&cursor={first['next']}")).json
    found = [entry["object"] for entry in first["entries"] + second["entries"]]
    assert found == ["q4", "q3", "q2", "q1", "q0"]
    assert second["next"] is None
    foreign = await scene.call("GET", f"/v1/audit?tenant=x&cursor={first['next']}")
    assert foreign.code == "invalid-cursor"
    assert (await scene.call("GET", "/v1/audit?tenant=%00")).code == "invalid-query"


async def test_a_tenant_sees_what_was_done_to_its_own_by_anybody(scene):
    await scene.call("PUT", "/v1/tenants/acme", send={"held": True})
    await scene.call("PUT", "/v1/tenants/other", send={"held": True})
    await scene.call("PUT", "/v1/queues/q", send={"held": True})
    scene.become(Principal(name="a", tenant="acme"))
    assert [entry["object"] for entry in await entries(scene)] == ["acme"]
    assert await entries(scene, "?tenant=other") == []
