"""One job: looking at it and operating it; and the listings."""

import pytest

from lamplighter import App
from lamplighter.model.ids import compose
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.values import Recording
from lamplighter.server.auth import Principal, Scope

NOBODY = compose(1, 2, 3)
ACTIONS = [
    ("GET", ""),
    ("GET", "/input"),
    ("DELETE", ""),
    ("POST", "/retry"),
    ("POST", "/replay"),
    ("POST", "/hold"),
    ("POST", "/unhold"),
    ("GET", "/why"),
    ("GET", "/attempts"),
    ("GET", "/logs"),
]


async def test_a_job_shows_its_thin_form(scene):
    job_id = await scene.submit(delay=60)
    job = (await scene.call("GET", f"/v1/jobs/{job_id}")).json
    assert set(job) == {
        "id",
        "type",
        "queue",
        "tenant",
        "status",
        "next_run",
        "created_at",
        "started_at",
        "finished_at",
        "result",
        "result_note",
        "reason",
        "error",
        "omitted",
        "progress",
    }
    assert (job["status"], job["queue"], job["tenant"]) == ("scheduled", "payments", "default")
    assert job["next_run"] > job["created_at"]


async def test_a_job_that_succeeded_shows_its_result(scene):
    job_id = await scene.submit()
    await scene.succeed(await scene.claim())
    job = (await scene.call("GET", f"/v1/jobs/{job_id}")).json
    assert job["status"] == "succeeded"
    assert job["result"] == {"paid": True}
    assert job["next_run"] is None
    assert job["finished_at"] >= job["started_at"]


async def test_a_dead_job_shows_why_but_no_frames(scene):
    job_id = await scene.submit()
    await scene.fail(await scene.claim())
    response = await scene.call("GET", f"/v1/jobs/{job_id}")
    assert response.json["status"] == "dead"
    assert response.json["error"] == {"type": "CardDeclined", "message": "no money"}
    assert b"secret frames" not in response.body


@pytest.mark.parametrize(("method", "action"), ACTIONS)
@pytest.mark.parametrize("job_id", [NOBODY, "x", "..", "%00", "☃"])
async def test_what_is_no_job_is_not_found(scene, method, action, job_id):
    response = await scene.call(method, f"/v1/jobs/{job_id}{action}")
    assert response.status == 404
    assert response.code == "unknown-job"


@pytest.mark.parametrize(("method", "action"), ACTIONS)
async def test_jobs_of_another_tenant_do_not_exist(scene, method, action):
    job_id = await scene.submit(tenant="b")
    scene.become(Principal(name="a", tenant="a"))
    response = await scene.call(method, f"/v1/jobs/{job_id}{action}")
    assert response.code == "unknown-job"
    record = await (await scene.engine()).inspector.job(job_id)
    assert record.status.value == "ready"
    assert record.hold is None


async def test_whoever_has_one_tenant_lists_and_submits_only_there(scene):
    await scene.submit(tenant="b")
    scene.become(Principal(name="a", tenant="a"))
    mine = await scene.submit()
    for query in ("", "?tenant=a", "?tenant=a&tenant=b"):
        page = (await scene.call("GET", f"/v1/jobs{query}")).json
        assert [(job["id"], job["tenant"]) for job in page["jobs"]] == [(mine, "a")]
    assert (await scene.call("GET", "/v1/jobs?tenant=b")).json["jobs"] == []
    body = {"type": "charge", "arguments": {"order_id": "o"}, "tenant": "b"}
    response = await scene.call("POST", "/v1/jobs", send=body)
    assert (response.status, response.code) == (403, "forbidden")


async def test_a_route_is_closed_to_whoever_lacks_its_scope(scene):
    few = Principal(name="a", scopes=frozenset({Scope.JOBS_READ}))
    scene.become(few)
    assert (await scene.call("GET", "/v1/jobs")).status == 200
    for method, path in (("POST", "/v1/jobs"), ("GET", "/v1/workers")):
        response = await scene.call(method, path, send={})
        assert (response.status, response.code) == (403, "forbidden")


async def test_a_waiting_job_is_cancelled_at_once_and_stays_so(scene):
    job_id = await scene.submit()
    for _ in range(2):
        response = await scene.call("DELETE", f"/v1/jobs/{job_id}?reason=not+needed")
        assert response.status == 200
        assert response.json["status"] == "cancelled"
    record = await (await scene.engine()).inspector.job(job_id)
    assert (record.cancel.by, record.cancel.reason) == ("local", "not needed")


async def test_a_running_job_is_asked_to_stop(scene):
    job_id = await scene.submit()
    await scene.claim()
    for _ in range(2):
        response = await scene.call("DELETE", f"/v1/jobs/{job_id}")
        assert response.status == 202
        assert response.json["status"] == "cancelling"


async def test_a_job_that_has_ended_cannot_be_cancelled(scene):
    job_id = await scene.submit()
    await scene.succeed(await scene.claim())
    response = await scene.call("DELETE", f"/v1/jobs/{job_id}")
    assert (response.status, response.code) == (409, "wrong-state")
    assert "handle" not in response.json["hint"]


async def test_a_job_is_held_and_let_go(scene):
    job_id = await scene.submit()
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/hold")).json["status"] == "paused"
    why = (await scene.call("GET", f"/v1/jobs/{job_id}/why")).json
    assert why["reasons"][0]["why"] == "held_job"
    assert why["reasons"][0]["note"]["by"] == "local"
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/unhold")).json["status"] == "ready"


async def test_retry_makes_a_job_due_now_and_wakes_the_dead(scene):
    job_id = await scene.submit(delay=3600)
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/retry")).json["status"] == "ready"
    await scene.fail(await scene.claim())
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/retry")).json["status"] == "ready"
    assert (await scene.claim()).job.generation == 0


async def test_a_running_job_cannot_be_retried(scene):
    job_id = await scene.submit()
    await scene.claim()
    response = await scene.call("POST", f"/v1/jobs/{job_id}/retry")
    assert (response.status, response.code) == (409, "wrong-state")


async def test_a_job_that_has_ended_is_replayed_under_its_id(scene):
    job_id = await scene.submit()
    await scene.succeed(await scene.claim())
    response = await scene.call("POST", f"/v1/jobs/{job_id}/replay?reason=again")
    assert (response.status, response.json["status"]) == (200, "ready")
    assert response.json["result"] is None
    assert (await scene.claim()).job.id == job_id


async def test_a_job_that_has_not_ended_cannot_be_replayed(scene):
    job_id = await scene.submit()
    response = await scene.call("POST", f"/v1/jobs/{job_id}/replay")
    assert (response.status, response.code) == (409, "wrong-state")
    assert "handle" not in response.json["hint"]


async def test_attempts_are_listed(scene):
    job_id = await scene.submit()
    await scene.fail(await scene.claim())
    (attempt,) = (await scene.call("GET", f"/v1/jobs/{job_id}/attempts")).json["attempts"]
    assert (attempt["outcome"], attempt["worker"]) == ("failed", "w-1")
    assert attempt["error"]["message"] == "no money"


async def test_attempts_come_in_pages_from_the_newest_back(scene):
    job_id = await scene.submit()
    for _ in range(3):
        await scene.fail(await scene.claim())
        await scene.call("POST", f"/v1/jobs/{job_id}/retry")
    page = (await scene.call("GET", f"/v1/jobs/{job_id}/attempts?limit=2")).json
    assert [attempt["lease"] for attempt in page["attempts"]] == [2, 3]
    rest = await scene.call("GET", f"/v1/jobs/{job_id}/attempts?limit=2&cursor={page['next']}")
    assert [attempt["lease"] for attempt in rest.json["attempts"]] == [1]
    assert rest.json["next"] is None
    many = await scene.call("GET", f"/v1/jobs/{job_id}/attempts?limit=101")
    assert (many.status, many.code) == (400, "invalid-query")


async def test_attempts_say_where_it_failed(scene):
    job_id = await scene.submit()
    await scene.fail(await scene.claim())
    (attempt,) = (await scene.call("GET", f"/v1/jobs/{job_id}/attempts")).json["attempts"]
    assert attempt["error"]["traceback"] == "secret frames"
    assert attempt["error"]["fingerprint"] == "f-1"


async def test_a_job_shows_what_it_was_given(scene):
    job_id = await scene.submit(
        arguments={"order_id": "o-1", "cents": 5},
        priority="high",
        tags=["eu"],
        metadata={"trace": "t-1"},
        timeout=30,
        retry={"max_attempts": 2, "fixed": 10},
    )
    await scene.call("POST", f"/v1/jobs/{job_id}/hold?reason=wait")
    given = (await scene.call("GET", f"/v1/jobs/{job_id}/input")).json
    assert given["arguments"] == {"order_id": "o-1", "cents": 5}
    assert (given["priority"], given["delivery"]) == ("high", "at_least_once")
    assert (given["tags"], given["metadata"]) == (["eu"], {"trace": "t-1"})
    retry = given["retry"]
    assert (given["timeout"], retry["max_attempts"], retry["fixed"]) == (30, 2, 10)
    assert (given["hold"]["by"], given["hold"]["reason"]) == ("local", "wait")
    assert (given["progress"], given["schedule"], given["cancel"]) == (None, None, None)


async def test_a_job_shows_how_far_it_has_come(scene):
    job_id = await scene.submit()
    claim = await scene.claim()
    journal = Journal(progress=Progress(done=3, total=4, note="nearly"))
    await (await scene.engine()).jobs.record([Recording(job_id, claim.fence, journal)])
    for path in (f"/v1/jobs/{job_id}/input", f"/v1/jobs/{job_id}"):
        shown = (await scene.call("GET", path)).json
        assert shown["progress"] == {"done": 3, "total": 4, "note": "nearly"}
    (listed,) = (await scene.call("GET", "/v1/jobs")).json["jobs"]
    assert listed["progress"] == {"done": 3, "total": 4, "note": "nearly"}


async def test_a_job_that_has_said_nothing_shows_no_progress(scene):
    job_id = await scene.submit()
    assert (await scene.call("GET", f"/v1/jobs/{job_id}")).json["progress"] is None


async def test_secret_arguments_stay_secret(make, tmp_path):
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.job(secrets=["card"])
    async def charge(order_id: str, card: str) -> None:
        pass

    made = make(app=app)
    job_id = await made.submit(arguments={"order_id": "o-1", "card": "4111111111111111"})
    response = await made.call("GET", f"/v1/jobs/{job_id}/input")
    assert response.json["arguments"] == {"order_id": "o-1", "card": "•••"}
    assert b"4111" not in response.body


async def test_logs_are_read_page_by_page_and_go_on(scene):
    job_id = await scene.submit()
    claim = await scene.claim()
    await scene.log(claim, "one", "two")
    path, seen, cursor = f"/v1/jobs/{job_id}/logs?limit=1", [], ""
    for _ in range(3):
        page = (await scene.call("GET", path + cursor)).json
        seen += [line["text"] for line in page["lines"]]
        cursor = f"&cursor={page['next']}"
    assert seen == ["one", "two"]


async def test_the_cursor_of_one_log_does_not_open_another(scene):
    first, second = await scene.submit(), await scene.submit()
    await scene.log(await scene.claim(), "one")
    page = (await scene.call("GET", f"/v1/jobs/{first}/logs")).json
    response = await scene.call("GET", f"/v1/jobs/{second}/logs?cursor={page['next']}")
    assert (response.status, response.code) == (400, "invalid-cursor")


async def test_all_jobs_are_listed_page_by_page_newest_first(scene):
    submitted = [await scene.submit() for _ in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        page = (await scene.call("GET", f"/v1/jobs?limit=2{cursor}")).json
        assert len(page["jobs"]) <= 2
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert seen == submitted[::-1]


async def test_a_page_has_at_most_what_the_setting_says(make):
    made = make(http_page=2)
    await made.publish("charge")
    for _ in range(3):
        await made.submit()
    assert len((await made.call("GET", "/v1/jobs?limit=1000")).json["jobs"]) == 2


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=pending", 2),
        ("status=failed", 1),
        ("status=ready&status=dead", 2),
        ("type=charge", 3),
        ("type=other", 0),
        ("queue=payments&tenant=acme", 1),
        ("tag=eu", 1),
        ("fingerprint=f-1", 1),
        ("finished_after=2020-01-01T00:00:00Z", 1),
        ("finished_before=2020-01-01T00:00:00Z", 0),
    ],
)
async def test_filters_choose(scene, query, found):
    await scene.submit()
    await scene.fail(await scene.claim())
    await scene.submit(tenant="acme")
    await scene.submit(tags=["eu"], delay=60)
    assert len((await scene.call("GET", f"/v1/jobs?{query}")).json["jobs"]) == found


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("status=nonsense", "invalid-query"),
        ("limit=0", "invalid-query"),
        ("limit=x", "invalid-query"),
        ("limit=1&limit=2", "invalid-query"),
        ("state=dead", "invalid-query"),
        ("tag=%00", "invalid-query"),
        ("type=", "invalid-query"),
        ("type=%ff", "invalid-query"),
        ("noequals", "invalid-query"),
        ("&".join(["type=a"] * 101), "invalid-query"),
        ("finished_after=yesterday", "invalid-query"),
        ("finished_after=2020-01-01T00:00:00", "invalid-query"),
        ("finished_after=1893456000", "invalid-query"),
        ("cursor=1.2", "invalid-cursor"),
        ("cursor=%F0%9F%98%80", "invalid-cursor"),
        ("cursor=AAAA", "invalid-cursor"),
        ("cursor=", "invalid-cursor"),
    ],
)
async def test_a_query_that_cannot_be_used_is_refused(scene, query, code):
    response = await scene.call("GET", f"/v1/jobs?{query}")
    assert (response.status, response.code) == (400, code)


async def test_the_oldest_and_newest_instants_there_are_do_no_harm(scene):
    for at in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):
        assert (await scene.call("GET", f"/v1/jobs?finished_after={at}")).status == 200
        run_at = at.replace("%2B", "+")
        body = {"type": "charge", "arguments": {"order_id": "o"}, "run_at": run_at}
        assert (await scene.call("POST", "/v1/jobs", send=body)).status in {201, 422}


async def test_a_cursor_belongs_to_its_filter_and_its_secret(make):
    one, two = "0123456789abcdef" * 2, "fedcba9876543210" * 2
    made, other, twin = (make(http_secret=secret) for secret in (one, two, one))
    await made.publish("charge")
    for _ in range(2):
        await made.submit()
    cursor = (await made.call("GET", "/v1/jobs?limit=1")).json["next"]
    assert (await twin.call("GET", f"/v1/jobs?limit=1&cursor={cursor}")).status == 200
    for service, query in ((made, "status=ready&"), (other, "")):
        response = await service.call("GET", f"/v1/jobs?{query}cursor={cursor}")
        assert response.code == "invalid-cursor"


async def test_types_queues_and_workers_are_listed(scene):
    await scene.submit()
    (kind,) = (await scene.call("GET", "/v1/types")).json["types"]
    assert (kind["name"], kind["live_workers"]) == ("charge", 1)
    assert kind["schema"]["required"] == ["order_id"]
    queues = (await scene.call("GET", "/v1/queues")).json["queues"]
    assert [(queue["name"], queue["ready"]) for queue in queues] == [("payments", 1)]
    (worker,) = (await scene.call("GET", "/v1/workers")).json["workers"]
    assert (worker["id"], worker["state"], worker["types"]) == ("w-1", "alive", ["charge"])


async def test_a_service_without_its_store_is_alive_but_not_ready(make, tmp_path, caplog):
    made = make(app=App(f"sqlite:///{tmp_path}/nowhere/jobs.db"))
    assert (await made.call("GET", "/healthz")).status == 200
    ready = await made.call("GET", "/readyz")
    assert (ready.status, ready.code) == (503, "not-ready")
    assert "not ready: " in caplog.text
    jobs = await made.call("GET", "/v1/types")
    assert jobs.status == 503
    assert jobs.headers["retry-after"]
    assert str(tmp_path) not in jobs.body.decode()


async def test_a_service_with_its_store_is_ready(scene):
    assert (await scene.call("GET", "/readyz")).json == {"status": "ok"}
