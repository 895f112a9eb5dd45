"""Everything that a filter means, changed some at a time: `POST /v1/jobs:change`."""

import pytest

from lamplighter.server.auth import Principal, Scope

NONE = {"done": 0, "requested": 0, "already": 0, "conflict": 0, "unknown": 0}


async def act(scene, action: str, **body) -> dict:
    response = await scene.call("POST", "/v1/jobs:change", send={"action": action, **body})
    assert response.status == 200, response.body
    return response.json


async def status(scene, job_id: str) -> str:
    return (await scene.call("GET", f"/v1/jobs/{job_id}")).json["status"]


def writer(tenant: str | None = None, *more: Scope) -> Principal:
    scopes = frozenset({Scope.JOBS_WRITE, Scope.JOBS_READ, *more})
    return Principal(name="writer", scopes=scopes, tenant=tenant)


async def test_what_a_filter_means_is_changed_and_nothing_else(scene):
    wanted = [await scene.submit(tenant="acme", tags=["eu"]) for _ in range(3)]
    others = [await scene.submit(tenant="other", tags=["eu"]), await scene.submit(tenant="acme")]
    chosen = {"tenant": ["acme"], "tag": "eu", "type": ["charge"], "queue": ["payments"]}

    done = await act(scene, "cancel", filter=chosen)

    assert done == {"dry_run": False, "answers": NONE | {"done": 3}, "next": None}
    assert {await status(scene, job_id) for job_id in wanted} == {"cancelled"}
    assert {await status(scene, job_id) for job_id in others} == {"ready"}


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("hold", "ready", "paused"),
        ("unhold", "paused", "ready"),
        ("retry", "scheduled", "ready"),
        ("retry", "dead", "ready"),
        ("replay", "succeeded", "ready"),
        ("cancel", "running", "cancelling"),
    ],
)
async def test_each_action_is_done_to_jobs_of_a_status(scene, action, before, after):
    job_id = await scene.submit(delay=60 if before == "scheduled" else 0)
    if before == "paused":
        await act(scene, "hold", all=True)
    elif before == "dead":
        await scene.fail(await scene.claim())
    elif before == "succeeded":
        await scene.succeed(await scene.claim())
    elif before == "running":
        await scene.claim()
    expected = "requested" if before == "running" else "done"
    chosen = {"status": ["running" if before == "running" else before]}

    foretold = await act(scene, action, filter=chosen, dry_run=True)
    assert foretold == {"dry_run": True, "answers": NONE | {expected: 1}, "next": None}
    assert (await act(scene, action, filter=chosen))["answers"] == NONE | {expected: 1}

    assert await status(scene, job_id) == after


async def test_jobs_that_have_ended_are_purged(scene):
    job_id = await scene.submit()
    await scene.succeed(await scene.claim())
    waiting = await scene.submit()

    assert (await act(scene, "purge", all=True))["answers"] == NONE | {"done": 1}

    assert (await scene.call("GET", f"/v1/jobs/{job_id}")).status == 404
    assert await status(scene, waiting) == "ready"


async def test_a_request_does_a_bounded_part_and_says_where_to_go_on(scene):
    ids = [await scene.submit() for _ in range(5)]

    page = await act(scene, "hold", all=True, limit=2)
    parts = [page["answers"]["done"]]
    while page["next"] is not None:
        later = await scene.submit()
        page = await act(scene, "hold", all=True, limit=2, cursor=page["next"])
        parts.append(page["answers"]["done"])
        assert await status(scene, later) == "ready"

    assert (sum(parts), max(parts)) == (5, 2)
    assert {await status(scene, job_id) for job_id in ids} == {"paused"}


async def test_a_cursor_is_good_for_its_action_and_filter_alone(scene):
    for _ in range(3):
        await scene.submit()
    cursor = (await act(scene, "hold", all=True, limit=1))["next"]

    for body in (
        {"action": "cancel", "all": True},
        {"action": "hold", "filter": {"type": ["charge"]}},
    ):
        response = await scene.call("POST", "/v1/jobs:change", send={**body, "cursor": cursor})
        assert (response.status, response.code) == (400, "invalid-cursor")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid-option"),
        ({"filter": {}}, "invalid-option"),
        ({"filter": {"type": []}}, "invalid-option"),
        ({"filter": {"type": ["charge"]}, "all": True}, "invalid-option"),
        ({"filter": {"status": ["sleeping"]}}, "invalid-option"),
        ({"filter": {"type": [""]}}, "invalid-name"),
        ({"filter": {"kind": ["charge"]}}, "invalid-body"),
        ({"all": True, "limit": 0}, "invalid-body"),
        ({"all": True, "limit": 1001}, "invalid-body"),
        ({"all": True, "action": "erase"}, "invalid-body"),
        ({"all": True, "reason": "a\nb"}, "invalid-option"),
    ],
)
async def test_what_is_not_meant_clearly_is_refused(scene, body, code):
    job_id = await scene.submit()

    response = await scene.call("POST", "/v1/jobs:change", send={"action": "cancel", **body})

    assert (response.status, response.code) == (422, code), response.body
    assert await status(scene, job_id) == "ready"


async def test_jobs_of_another_tenant_do_not_exist(scene):
    theirs = await scene.submit(tenant="b")
    scene.become(writer("a"))
    for body in ({"all": True}, {"filter": {"tenant": ["b"]}}, {"filter": {"type": ["charge"]}}):
        assert (await act(scene, "cancel", **body))["answers"] == NONE
    scene.become(writer("b"))
    assert await status(scene, theirs) == "ready"
    assert (await act(scene, "cancel", all=True))["answers"]["done"] == 1


async def test_only_operators_purge_by_filter(scene):
    await scene.submit()
    await scene.succeed(await scene.claim())
    body = {"action": "purge", "all": True}

    scene.become(writer())
    response = await scene.call("POST", "/v1/jobs:change", send=body)
    assert (response.status, response.code) == (403, "forbidden")
    scene.become(writer(None, Scope.OPERATOR))
    assert (await act(scene, "purge", all=True))["answers"]["done"] == 1


async def test_what_was_done_is_noted_for_each_tenant(scene):
    for tenant in ("a", "b", "b"):
        await scene.submit(tenant=tenant)
    await scene.claim()
    chosen = {"type": ["charge"]}

    await act(scene, "cancel", filter=chosen, reason="wrong prices", dry_run=True)
    await act(scene, "cancel", filter=chosen, reason="wrong prices")

    found = (await scene.call("GET", "/v1/audit")).json["entries"]
    assert {
        (entry["tenant"], entry["action"], entry["object"], entry["reason"]) for entry in found
    } == {(name, "jobs.change", 'cancel {"type":["charge"]}', "wrong prices") for name in "ab"}
    assert sorted(entry["answer"] for entry in found) in (
        ["1 requested", "2 done"],
        ["1 done", "1 done, 1 requested"],
    )


async def test_jobs_are_listed_and_changed_by_schedule_and_age(scene):
    old = await scene.submit()
    for query in ("created_before=2020-01-01T00:00:00Z", "schedule=nightly"):
        assert (await scene.call("GET", f"/v1/jobs?{query}")).json["jobs"] == []
    for chosen in ({"created_before": "2020-01-01T00:00:00Z"}, {"schedule": ["nightly"]}):
        assert (await act(scene, "cancel", filter=chosen))["answers"] == NONE
    assert (await act(scene, "cancel", filter={"created_after": "2020-01-01T00:00:00Z"}))[
        "answers"
    ]["done"] == 1
    assert await status(scene, old) == "cancelled"
