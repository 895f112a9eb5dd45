"""How many queues callers may make, and what it costs to know."""

import asyncio

import pytest

from lamplighter import App, runtime
from lamplighter.server import queue_names
from lamplighter.server.errors import TooManyQueues

GOOD = {"type": "charge", "arguments": {"order_id": "o-1"}}


async def submit(scene, queue, **more):
    return await scene.call("POST", "/v1/jobs", send={**GOOD, "queue": queue, **more})


async def queues(scene):
    return [each["name"] for each in (await scene.call("GET", "/v1/queues")).json["queues"]]


@pytest.fixture
async def full(make):
    """A store that has as many queues as callers may make."""
    made = make(http_queues=2)
    await made.publish("charge")
    for name in ("a", "b"):
        assert (await submit(made, name)).status == 201
    return made


async def test_beyond_the_bound_no_new_queue_is_made(full):
    response = await submit(full, "c")
    assert (response.status, response.code) == (422, "too-many-queues")
    problem = response.json
    assert problem["value"] == "c"
    assert "`c`" in problem["detail"]
    assert "2 queues" in problem["detail"]
    assert "http_queues" in problem["hint"]
    assert await queues(full) == ["a", "b"]


async def test_queues_that_are_there_are_not_refused(full):
    assert (await submit(full, "a")).status == 201


async def test_the_queue_of_a_published_type_is_always_taken(full):
    for more in ({}, {"queue": "payments"}):
        response = await full.call("POST", "/v1/jobs", send={**GOOD, **more})
        assert response.status == 201, response.body
    assert await queues(full) == ["a", "b", "payments"]


async def test_the_queue_of_a_type_of_our_own_is_always_taken(make, url):
    app = App(url)

    @app.job(queue="mail")
    def greet() -> None: ...

    made = make(app=app, http_queues=0)
    assert (await made.call("POST", "/v1/jobs", send={"type": "greet"})).status == 201
    assert await queues(made) == ["mail"]


async def test_a_queue_that_an_operator_makes_is_taken(full):
    assert (await submit(full, "c")).status == 422
    assert (await full.call("PUT", "/v1/queues/c", send={"held": False})).status == 200
    assert (await submit(full, "c")).status == 201


async def test_a_batch_is_refused_as_a_whole_and_the_job_is_named(full):
    batch = [{**GOOD, "queue": name} for name in ("a", "payments", "c", "d")]
    response = await full.call("POST", "/v1/jobs:batch", send=batch)
    assert (response.status, response.code) == (422, "too-many-queues")
    assert response.json["detail"].startswith("jobs[2]: ")
    assert response.json["value"] == "c"
    assert await queues(full) == ["a", "b"]


async def test_a_batch_cannot_bring_more_queues_than_there_is_room_for(make):
    made = make(http_queues=3)
    await made.publish("charge")
    batch = [{**GOOD, "queue": f"q-{number}"} for number in range(4)]
    assert (await made.call("POST", "/v1/jobs:batch", send=batch)).json["value"] == "q-3"
    assert (await made.call("POST", "/v1/jobs:batch", send=batch[:3])).status == 200
    assert len(await queues(made)) == 3


async def test_callers_at_the_same_time_share_the_room(make):
    made = make(http_queues=5)
    await made.publish("charge")
    answers = await asyncio.gather(*(submit(made, f"q-{number}") for number in range(20)))
    assert sorted(answer.status for answer in answers) == [201] * 5 + [422] * 15
    assert len(await queues(made)) == 5


async def test_tenants_that_come_at_once_share_the_room(make):
    made = make(http_queues=2)
    await made.publish("charge")
    names = made.service.queues

    answers = await asyncio.gather(
        *(names.admit([f"of-{tenant}"], tenant) for tenant in "abcde"), return_exceptions=True
    )

    assert answers[:2] == [None, None]
    assert {type(answer) for answer in answers[2:]} == {TooManyQueues}


async def test_schedules_count_before_they_have_fired(make):
    made = make(http_queues=2)
    await made.publish("charge")
    for name in ("a", "b"):
        await made.put(name, queue=name)
    assert await queues(made) == ["a", "b"]
    elsewhere = make(http_queues=2)
    for body in ({"cron": "0 0 1 1 *", "id": "c"}, {"schedule": {"cron": "0 0 1 1 *", "id": "c"}}):
        path = "/v1/jobs" if "schedule" in body else "/v1/schedules"
        response = await elsewhere.call("POST", path, send={**GOOD, **body, "queue": "c"})
        assert (response.status, response.code) == (422, "too-many-queues")
    assert (await elsewhere.call("GET", "/v1/schedules/c")).status == 404


async def test_a_schedule_is_not_moved_to_a_new_queue_either(full):
    await full.put("s", queue="a")
    response = await full.call("PATCH", "/v1/schedules/s", send={"queue": "c"})
    assert (response.status, response.code) == (422, "too-many-queues")
    assert (await full.call("PATCH", "/v1/schedules/s", send={"queue": "b"})).status == 200


async def test_a_schedule_in_a_queue_of_its_own_can_be_changed(make):
    made = make(http_queues=0)

    @made.app.job(queue="mail")
    def greet() -> None: ...

    await made.app.schedules.put("s", "0 0 1 1 *", greet.options(queue="elsewhere").call())
    response = await made.call("PATCH", "/v1/schedules/s", send={"cron": "0 0 2 1 *"})
    assert response.status == 200, response.body


async def test_a_preview_is_refused_alike_and_takes_no_room(make):
    made = make(http_queues=1)
    await made.publish("charge")
    look = {**GOOD, "cron": "0 0 1 1 *"}
    for name in ("a", "b"):
        send = {**look, "queue": name}
        assert (await made.call("POST", "/v1/schedules:preview", send=send)).status == 200
    assert (await submit(made, "a")).status == 201
    response = await made.call("POST", "/v1/schedules:preview", send={**look, "queue": "b"})
    assert (response.status, response.code) == (422, "too-many-queues")


async def test_known_queues_cost_no_read_and_new_ones_few(full, calls):
    for _ in range(5):
        assert (await submit(full, "a")).status == 201
    assert calls["queues"] == 0
    for number in range(20):
        assert (await submit(full, f"new-{number}")).status == 422
    assert calls["queues"] <= 1


async def test_what_others_have_made_is_learned_after_a_moment(make, monkeypatch):
    one, two = make(http_queues=2), make(http_queues=2)
    await one.publish("charge")
    for scene, name in ((one, "a"), (two, "b")):
        assert (await submit(scene, name)).status == 201
    now = runtime.monotonic() + 2 * queue_names.FRESH
    monkeypatch.setattr(runtime, "monotonic", lambda: now)
    assert (await submit(one, "c")).status == 422
    assert (await submit(two, "a")).status == 201
