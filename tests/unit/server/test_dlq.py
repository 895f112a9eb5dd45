"""Dead letters: grouped by cause, replayed and purged some at a time."""

from functools import partial

import pytest

from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Rejected
from lamplighter.server.auth import Principal


async def die(scene, number: int = 1, **more) -> list[str]:
    """Let some jobs fail for good; gives their ids, the oldest first."""
    ids = []
    for _ in range(number):
        ids.append(await scene.submit(**more))
        await scene.fail(await scene.claim())
    return ids


async def act(scene, verb: str, **body) -> dict:
    response = await scene.call("POST", f"/v1/dlq:{verb}", send=body)
    assert response.status == 200, response.body
    return response.json


async def left(scene) -> int:
    groups = (await scene.call("GET", "/v1/dlq")).json["groups"]
    return sum(group["count"] for group in groups)


async def test_dead_letters_are_grouped_by_cause(scene):
    ids = await die(scene, 2)
    response = await scene.call("GET", "/v1/dlq")
    (group,) = response.json["groups"]
    assert (group["type"], group["fingerprint"], group["count"]) == ("charge", "f-1", 2)
    assert group["example"] == ids[-1]
    assert group["error"] == {"type": "CardDeclined", "message": "no money"}
    assert b"secret frames" not in response.body


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("type=charge", 2),
        ("type=other", 0),
        ("tenant=acme", 1),
        ("fingerprint=f-1&queue=payments", 2),
        ("finished_before=2020-01-01T00:00:00Z", 0),
    ],
)
async def test_filters_choose_groups(scene, query, count):
    await die(scene)
    await die(scene, tenant="acme")
    groups = (await scene.call("GET", f"/v1/dlq?{query}")).json["groups"]
    assert sum(group["count"] for group in groups) == count


@pytest.mark.parametrize("verb", ["replay", "purge"])
async def test_what_a_row_shows_is_what_is_acted_on(scene, verb):
    engine = await scene.engine()
    rows = {}
    for tenant in ("default", "acme"):
        (rows[tenant, "f-1"],) = await die(scene, tenant=tenant)
        rows[tenant, ""] = await scene.submit(tenant=tenant)
        await engine.jobs.settle([settle(await scene.claim(), Rejected("no"))])
    groups = (await scene.call("GET", "/v1/dlq?tenant=acme&queue=payments")).json["groups"]
    assert {(group["fingerprint"], group["count"]) for group in groups} == {("f-1", 1), ("", 1)}
    chosen = {"type": ["charge"], "tenant": ["acme"], "queue": ["payments"]}
    for fingerprint in ("", "f-1"):
        done = await act(scene, verb, fingerprint=[fingerprint or "none"], **chosen)
        assert (done["done"], done["ids"]) == (1, [rows["acme", fingerprint]])
    assert await left(scene) == 2


async def test_numbers_of_which_older_ones_are_left_out_say_so(scene, monkeypatch):
    ids = await die(scene, 3)
    for query in ("", "?tenant=default"):
        assert not (await scene.call("GET", f"/v1/dlq{query}")).json["at_least"]
    inspector = await scene.service.inspector()
    monkeypatch.setattr(inspector, "dead_groups", partial(inspector.dead_groups, most=2))
    answer = (await scene.call("GET", "/v1/dlq")).json
    assert ([group["count"] for group in answer["groups"]], answer["at_least"]) == ([2], True)
    answer = (await scene.call("GET", "/v1/dlq?tenant=acme")).json
    assert (answer["groups"], answer["at_least"]) == ([], True)
    done = await act(scene, "replay", all=True, dry_run=True)
    assert (done["ids"], done["left"], done["at_least"]) == (ids[::-1], 2, True)


@pytest.mark.parametrize("query", ["status=dead", "type=", "finished_after=x", "tag=%00"])
async def test_a_query_that_cannot_be_used_is_refused(scene, query):
    response = await scene.call("GET", f"/v1/dlq?{query}")
    assert (response.status, response.code) == (400, "invalid-query")


@pytest.mark.parametrize(("verb", "generation"), [("retry", 0), ("replay", 1)])
async def test_dead_letters_run_again_under_their_ids(scene, verb, generation):
    ids = await die(scene, 2)
    done = await act(scene, verb, fingerprint=["f-1"])
    assert done == {
        "dry_run": False,
        "done": 2,
        "ids": ids[::-1],
        "left": 0,
        "at_least": False,
        "next": None,
    }
    for job_id in ids:
        assert (await scene.call("GET", f"/v1/jobs/{job_id}")).json["status"] == "ready"
        assert (await scene.claim()).job.generation == generation


async def test_dead_letters_are_purged_for_ever(scene):
    ids = await die(scene, 2)
    await die(scene, tenant="acme")
    done = await act(scene, "purge", tenant=["default"])
    assert (done["done"], done["left"]) == (2, 0)
    for job_id in ids:
        assert (await scene.call("GET", f"/v1/jobs/{job_id}")).code == "unknown-job"
    assert await left(scene) == 1


@pytest.mark.parametrize("verb", ["retry", "replay", "purge"])
async def test_a_dry_run_tells_and_does_nothing(scene, verb):
    ids = await die(scene, 3)
    done = await act(scene, verb, all=True, dry_run=True, limit=2)
    assert (done["dry_run"], done["done"], done["left"]) == (True, 0, 3)
    assert done["ids"] == ids[:0:-1]
    rest = await act(scene, verb, all=True, dry_run=True, cursor=done["next"])
    assert rest["ids"] == ids[:1]
    assert await left(scene) == 3


async def test_a_request_does_a_bounded_part_and_tells_what_is_left(scene):
    ids = await die(scene, 5)
    first = await act(scene, "replay", all=True, limit=2)
    assert (first["done"], first["left"]) == (2, 3)
    # One that dies again meanwhile is not met a second time.
    await scene.fail(await scene.claim())
    seen, cursor = first["ids"], first["next"]
    while cursor is not None:
        page = await act(scene, "replay", all=True, limit=2, cursor=cursor)
        assert page["done"] <= 2
        seen, cursor = seen + page["ids"], page["next"]
    assert seen == ids[::-1]
    assert await left(scene) == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid-option"),
        ({"dry_run": True}, 422, "invalid-option"),
        ({"all": True, "type": ["charge"]}, 422, "invalid-option"),
        ({"all": True, "limit": 0}, 422, "invalid-body"),
        ({"all": True, "limit": 1001}, 422, "invalid-body"),
        ({"type": [""]}, 422, "invalid-name"),
        ({"status": ["succeeded"]}, 422, "invalid-body"),
        ({"all": True, "cursor": "AAAA"}, 400, "invalid-cursor"),
    ],
)
@pytest.mark.parametrize("verb", ["retry", "replay", "purge"])
async def test_what_is_not_meant_clearly_is_refused(scene, verb, body, status, code):
    await die(scene)
    response = await scene.call("POST", f"/v1/dlq:{verb}", send=body)
    assert (response.status, response.code) == (status, code)
    assert await left(scene) == 1


async def test_only_dead_letters_are_meant(scene):
    finished = await scene.submit()
    await scene.succeed(await scene.claim())
    waiting = await scene.submit(delay=60)
    assert (await act(scene, "purge", all=True))["ids"] == []
    for job_id in (finished, waiting):
        assert (await scene.call("GET", f"/v1/jobs/{job_id}")).status == 200


async def test_dead_letters_of_another_tenant_do_not_exist(scene):
    await die(scene, tenant="b")
    scene.become(Principal(name="a", tenant="a"))
    for query in ("", "?tenant=b"):
        assert (await scene.call("GET", f"/v1/dlq{query}")).json["groups"] == []
    for body in ({"all": True}, {"tenant": ["b"]}, {"fingerprint": ["f-1"]}):
        for verb in ("retry", "replay", "purge"):
            done = await act(scene, verb, **body)
            assert (done["done"], done["ids"], done["left"]) == (0, [], 0)
    scene.become(Principal(name="b", tenant="b"))
    assert await left(scene) == 1
    assert (await act(scene, "replay", all=True))["done"] == 1


async def test_who_did_it_and_why_is_checked(scene):
    await die(scene)
    response = await scene.call("POST", "/v1/dlq:purge?reason=a%0Ab", send={"all": True})
    assert (response.status, response.code) == (400, "invalid-query")
    assert await left(scene) == 1
