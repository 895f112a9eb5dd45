"""One schedule: looking at it, changing it, operating it, and what it did and will do."""

import asyncio

import pytest

from lamplighter.model.job import Delivery
from lamplighter.model.schedule import Cron, Interval, Union
from lamplighter.port.schedules import NewSchedule
from lamplighter.secrecy import HIDDEN
from lamplighter.server.auth import Principal

ACTIONS = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("GET", "/runs"),
    ("GET", "/preview"),
    ("POST", "/trigger"),
    ("POST", "/hold"),
    ("POST", "/unhold"),
    ("POST", "/backfill"),
]
BODIES = {
    "": {"max_runs": 5},
    "/backfill": {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"},
}
HERE = "/v1/schedules/nightly"


@pytest.fixture
async def nightly(scene):
    await scene.put("nightly", timezone="Europe/Berlin")
    return scene


async def change(scene, **fields) -> dict:
    response = await scene.call("PATCH", HERE, send=fields)
    assert response.status == 200, response.body
    return response.json


@pytest.mark.parametrize(("method", "action"), ACTIONS)
async def test_what_is_no_schedule_is_not_found(nightly, method, action):
    for schedule_id in ("nobody", "%00", "x" * 300):
        path = f"/v1/schedules/{schedule_id}{action}"
        response = await nightly.call(method, path, send=BODIES.get(action))
        assert (response.status, response.code) == (404, "unknown-schedule")


@pytest.mark.parametrize(("method", "action"), ACTIONS)
async def test_schedules_of_another_tenant_do_not_exist(nightly, method, action):
    nightly.become(Principal(name="a", tenant="a"))
    response = await nightly.call(method, HERE + action, send=BODIES.get(action))
    assert (response.status, response.code) == (404, "unknown-schedule")
    record = await (await nightly.engine()).schedules.schedule("nightly")
    assert (record.version, record.hold) == (1, None)
    assert (await nightly.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_a_schedule_shows_what_it_is(nightly):
    found = (await nightly.call("GET", HERE)).json
    assert (found["id"], found["type"], found["version"]) == ("nightly", "charge", 1)
    assert "02:30" in found["spec"]["description"]
    assert (found["unreadable"], found["hold"], found["backfill"]) == (None, None, None)


async def test_secret_arguments_are_not_shown_and_survive_a_change(make):
    scene = make()
    await scene.publish("charge", secrets=["card"])
    await scene.put("nightly", arguments={"order_id": "o-1", "card": "4711"})
    shown = await scene.call("GET", HERE)
    assert b"4711" not in shown.body
    arguments = {**shown.json["spec"]["arguments"], "order_id": "o-2"}
    await change(scene, arguments=arguments)
    assert (await scene.call("POST", f"{HERE}/trigger")).status == 200
    assert (await scene.claim()).job.args == b'{"order_id":"o-2","card":"4711"}'


@pytest.mark.parametrize("fields", [{}, {"arguments": {"order_id": "o-2", "card": HIDDEN}}])
async def test_secret_arguments_are_not_handed_over_to_another_type(make, fields):
    scene = make()
    await scene.publish("charge", secrets=["card"])
    await scene.publish("refund")
    await scene.put("nightly", arguments={"order_id": "o-1", "card": "4711"})

    refused = await scene.call("PATCH", HERE, send={"type": "refund", **fields})

    assert (refused.status, refused.code) == (422, "invalid-arguments")
    assert b"4711" not in refused.body
    assert (await scene.call("GET", HERE)).json["type"] == "charge"


async def test_secret_arguments_stay_secret_while_nobody_publishes_their_type(make):
    scene = make(http_unknown_types=1)
    await scene.publish("charge", secrets=["card"])
    await scene.put("nightly", arguments={"order_id": "o-1", "card": "4711"})
    elsewhere = make(http_unknown_types=1)
    elsewhere.service.catalog.get = _nothing
    for fields in ({"priority": "low"}, {"arguments": {"order_id": "o-2", "card": HIDDEN}}):
        response = await elsewhere.call("PATCH", HERE, send=fields)
        assert response.status == 200
        assert b"4711" not in response.body
    assert b"4711" not in (await scene.call("GET", HERE)).body
    assert (await scene.call("POST", f"{HERE}/trigger")).status == 200
    job = (await scene.claim()).job
    assert (job.args, job.extras.secrets) == (b'{"order_id":"o-2","card":"4711"}', ("card",))


async def _nothing(_: str) -> None:
    """Know no type, as after the week for which those of gone workers are kept."""


async def test_another_type_takes_arguments_that_are_given_anew(make):
    scene = make()
    await scene.publish("charge", secrets=["card"])
    await scene.publish("refund")
    await scene.put("nightly", arguments={"order_id": "o-1", "card": "4711"})
    for card in ("4711", "4712"):  # whether it was guessed is not told
        arguments = {"order_id": "o-2", "card": card}
        changed = await change(scene, type="refund", arguments=arguments)
        assert changed["spec"]["arguments"] == arguments


async def test_a_schedule_that_cannot_be_read_is_shown_and_can_be_deleted(nightly):
    engine = await nightly.engine()
    foreign = NewSchedule(id="nightly", spec="{}", tenant="default", type="charge", due_ms=None)
    await engine.schedules.put_schedules([foreign], by="test")
    found = (await nightly.call("GET", HERE)).json
    assert found["spec"] is None
    assert found["unreadable"]
    assert (await nightly.call("GET", "/v1/schedules")).json["schedules"] == [found]
    for method, action in (("PATCH", ""), ("GET", "/preview"), ("POST", "/trigger")):
        response = await nightly.call(method, HERE + action, send=BODIES.get(action))
        assert (response.status, response.code) == (422, "invalid-input")
    assert (await nightly.call("DELETE", HERE)).status == 200


# ── change ───────────────────────────────────────────────────────────────────────────────────


async def test_only_what_is_given_changes(nightly):
    await nightly.put("nightly", queue="slow", max_runs=3, tags=["eu"], retry={"fixed": 5})
    before = (await nightly.call("GET", HERE)).json
    after = await change(nightly, priority="high", window=60)
    assert after["version"] == before["version"] + 1
    expected = {**before["spec"], "priority": "high", "window": 60.0}
    assert after["spec"] == expected
    record = await (await nightly.engine()).schedules.schedule("nightly")
    assert "fixed" in record.spec


async def test_a_change_that_changes_nothing_makes_no_version(nightly):
    for fields in ({}, {"overlap": "skip"}, {"cron": "30 2 * * *"}, {"queue": "payments"}):
        assert (await change(nightly, **fields))["version"] == 1


async def test_null_brings_back_the_default(nightly):
    await nightly.put("nightly", max_runs=3, queue="slow", jitter=5, tags=["eu"])
    spec = (await change(nightly, max_runs=None, queue=None, jitter=None, tags=None))["spec"]
    assert (spec["max_runs"], spec["queue"], spec["jitter"]) == (None, "payments", 0)
    assert spec["tags"] == []


async def test_another_expression_keeps_the_time_zone(nightly):
    calendar = (await change(nightly, cron="45 2 * * *"))["spec"]["calendar"]
    assert (calendar["expression"], calendar["timezone"]) == ("45 2 * * *", "Europe/Berlin")
    calendar = (await change(nightly, timezone="UTC"))["spec"]["calendar"]
    assert (calendar["expression"], calendar["timezone"]) == ("45 2 * * *", "UTC")


async def test_another_kind_of_calendar_takes_the_place_of_the_old_one(nightly):
    assert (await change(nightly, every=60))["spec"]["calendar"]["kind"] == "interval"
    start = "2030-01-31T12:00:00Z"
    changed = await change(nightly, rrule="FREQ=DAILY", start=start)
    assert changed["spec"]["calendar"]["start"] == "2030-01-31T12:00:00+00:00"
    calendar = (await change(nightly, rrule="FREQ=WEEKLY"))["spec"]["calendar"]
    assert (calendar["text"], calendar["start"]) == ("FREQ=WEEKLY", "2030-01-31T12:00:00+00:00")
    calendar = (await change(nightly, start="2030-02-01T12:00:00Z"))["spec"]["calendar"]
    assert calendar["start"] == "2030-02-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cron": None}, "invalid-option"),
        ({"cron": "0 0 * * *", "every": 5}, "invalid-option"),
        ({"rrule": "FREQ=DAILY"}, "invalid-option"),
        ({"arguments": {"order_id": 5}}, "invalid-arguments"),
        ({"type": "unheard"}, "unknown-type"),
        ({"type": None}, "invalid-body"),
        ({"id": "other"}, "invalid-body"),
        ({"max_runs": 0}, "invalid-option"),
    ],
)
async def test_a_change_that_does_not_fit_is_refused_whole(nightly, fields, code):
    response = await nightly.call("PATCH", HERE, send={"priority": "low", **fields})
    assert (response.status, response.code) == (422, code)
    found = (await nightly.call("GET", HERE)).json
    assert (found["version"], found["spec"]["priority"]) == (1, "normal")


async def test_another_type_brings_its_own_queue(make):
    scene = make()
    await scene.publish("charge", "refund")
    await scene.put("nightly", queue="slow")
    found = await change(scene, type="refund")
    assert (found["type"], found["spec"]["queue"]) == ("refund", "payments")


async def test_a_combined_calendar_stays_unless_another_is_given(nightly):
    app = nightly.app
    both = Union(Cron("0 1 * * *"), Interval(86_400))
    call = await app.call("charge", {"order_id": "o-1"})
    await app.schedules.put("nightly", both, call)
    assert (await change(nightly, priority="low"))["spec"]["calendar"]["kind"] == "union"
    response = await nightly.call("PATCH", HERE, send={"timezone": "Europe/Berlin"})
    assert (response.status, response.code) == (422, "invalid-option")
    assert (await change(nightly, every=60))["spec"]["calendar"]["kind"] == "interval"


async def test_a_change_of_another_version_than_the_one_seen_is_refused(nightly):
    first = await nightly.call("PATCH", f"{HERE}?version=1", send={"max_runs": 5})
    assert (first.status, first.json["version"]) == (200, 2)
    second = await nightly.call("PATCH", f"{HERE}?version=1", send={"max_runs": 6})
    assert (second.status, second.code) == (409, "wrong-state")
    assert (await nightly.call("GET", HERE)).json["spec"]["max_runs"] == 5


async def test_a_deleted_schedule_is_gone(nightly):
    response = await nightly.call("DELETE", f"{HERE}?reason=not+needed")
    assert (response.status, response.json) == (200, {"id": "nightly"})
    assert (await nightly.call("GET", HERE)).code == "unknown-schedule"
    assert (await nightly.call("DELETE", HERE)).code == "unknown-schedule"


# ── operate ──────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_is_held_and_let_go(nightly):
    held = (await nightly.call("POST", f"{HERE}/hold?reason=holidays")).json
    assert (held["hold"]["by"], held["hold"]["reason"]) == ("local", "holidays")
    assert held["next_run"] is None
    assert (await nightly.put("nightly", max_runs=5)).json["next_run"] is None
    free = (await nightly.call("POST", f"{HERE}/unhold")).json
    assert free["hold"] is None
    assert free["next_run"]


@pytest.mark.parametrize("action", ["hold", "unhold", "trigger"])
async def test_a_reason_that_cannot_be_noted_is_refused(nightly, action):
    response = await nightly.call("POST", f"{HERE}/{action}?reason=a%0Ab")
    assert (response.status, response.code) == (400, "invalid-query")


async def test_a_triggered_schedule_runs_now(nightly):
    answer = (await nightly.call("POST", f"{HERE}/trigger")).json
    assert (answer["id"], answer["state"]) == ("nightly", "started")
    claim = await nightly.claim()
    assert claim.job.id == answer["job"]
    (run,) = (await nightly.call("GET", f"{HERE}/runs")).json["runs"]
    assert (run["kind"], run["state"], run["job"]) == ("trigger", "started", answer["job"])
    await nightly.succeed(claim)
    (run,) = (await nightly.call("GET", f"{HERE}/runs")).json["runs"]
    assert run["state"] == "succeeded"
    assert run["finished_at"] >= run["started_at"]


async def test_a_trigger_repeated_under_its_key_runs_once(nightly):
    await change(nightly, overlap="allow")
    headers = {"Idempotency-Key": "k-1"}
    first, again = [await nightly.call("POST", f"{HERE}/trigger", headers=headers) for _ in "ab"]
    assert (first.status, again.json) == (200, first.json)
    await nightly.succeed(await nightly.claim())
    assert (await nightly.call("POST", f"{HERE}/trigger", headers=headers)).json == first.json
    assert len((await nightly.call("GET", f"{HERE}/runs")).json["runs"]) == 1
    others = [{"Idempotency-Key": "k-2"}, {}]
    found = {(await nightly.call("POST", f"{HERE}/trigger", headers=h)).json["job"] for h in others}
    assert len(found | {first.json["job"]}) == 3
    nightly.become(Principal(name="somebody else"))
    theirs = (await nightly.call("POST", f"{HERE}/trigger", headers=headers)).json["job"]
    assert theirs not in found | {first.json["job"]}


async def test_a_schedule_that_was_made_anew_does_not_know_the_keys_of_the_old_one(nightly):
    headers = {"Idempotency-Key": "k-1"}
    first = (await nightly.call("POST", f"{HERE}/trigger", headers=headers)).json["job"]
    await nightly.call("DELETE", HERE)
    await nightly.put("nightly")
    answer = await nightly.call("POST", f"{HERE}/trigger", headers=headers)
    assert (answer.status, answer.json["state"]) == (200, "started")
    assert answer.json["job"] != first


async def test_a_key_that_cannot_be_one_is_refused_with_a_trigger(nightly):
    headers = {"Idempotency-Key": "k" * 300}
    response = await nightly.call("POST", f"{HERE}/trigger", headers=headers)
    assert (response.status, response.code) == (422, "invalid-name")
    assert (await nightly.call("GET", f"{HERE}/runs")).json["runs"] == []


@pytest.mark.parametrize(
    ("method", "action", "verb"),
    [
        ("DELETE", "", "delete_schedules"),
        ("POST", "/hold", "hold_schedules"),
        ("POST", "/unhold", "unhold_schedules"),
        ("POST", "/trigger", "trigger"),
        ("POST", "/backfill", "backfill"),
    ],
)
async def test_what_is_gone_since_it_was_looked_at_is_unknown_and_another_tenants_is_left_alone(
    scene, method, action, verb
):
    for tenant in ("acme", "other"):
        await scene.put("nightly", tenant=tenant)
    engine = await scene.service.client.engine()
    act, delete = getattr(engine.schedules, verb), engine.schedules.delete_schedules
    theirs = await engine.schedules.schedule("nightly", tenant="other")

    async def late(*args, **named):
        await delete(["nightly"], by="x", reason="", tenant="acme")
        return await act(*args, **named)

    setattr(engine.schedules, verb, late)
    scene.become(Principal(name="a", tenant="acme"))
    response = await scene.call(method, HERE + action, send=BODIES.get(action))
    assert (response.status, response.code) == (404, "unknown-schedule")
    assert await engine.schedules.schedule("nightly", tenant="other") == theirs
    assert (await engine.schedules.runs("nightly", tenant="other", limit=10)).runs == []


async def test_a_trigger_that_the_overlap_policy_forbids_is_refused(nightly):
    await nightly.call("POST", f"{HERE}/trigger")
    response = await nightly.call("POST", f"{HERE}/trigger")
    assert (response.status, response.code) == (409, "wrong-state")
    await nightly.put("nightly", overlap="queue_one")
    assert (await nightly.call("POST", f"{HERE}/trigger")).json["state"] == "queued"


async def test_a_backfill_begins_once(nightly):
    path, body = f"{HERE}/backfill", {**BODIES["/backfill"], "at_once": 2}
    for _ in range(2):
        response = await nightly.call("POST", path, send=body)
        assert response.status == 202
        backfill = response.json["backfill"]
        assert (backfill["from"], backfill["at_once"]) == ("2020-01-01T00:00:00Z", 2)
    response = await nightly.call("POST", path, send={**body, "at_once": 3})
    assert (response.status, response.code) == (409, "wrong-state")
    assert "lamplighter schedules" not in response.json["hint"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"from": "2020-01-02T00:00:00Z", "to": "2020-01-01T00:00:00Z"}, "invalid-option"),
        ({"from": "2020-01-02T00:00:00Z", "to": "2999-01-01T00:00:00Z"}, "invalid-option"),
        ({"from": "1960-01-02T00:00:00Z", "to": "2020-01-01T00:00:00Z"}, "invalid-time"),
        ({"from": "2020-01-02T00:00:00Z"}, "invalid-body"),
        ({**BODIES["/backfill"], "at_once": 0}, "invalid-body"),
    ],
)
async def test_a_backfill_that_cannot_be_is_refused(nightly, body, code):
    response = await nightly.call("POST", f"{HERE}/backfill", send=body)
    assert (response.status, response.code) == (422, code)


# ── look ahead and back ──────────────────────────────────────────────────────────────────────


async def test_runs_are_listed_page_by_page_the_latest_first(nightly):
    await nightly.put("nightly", overlap="allow")
    jobs = [(await nightly.call("POST", f"{HERE}/trigger")).json["job"] for _ in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        page = (await nightly.call("GET", f"{HERE}/runs?limit=2{cursor}")).json
        seen += [run["job"] for run in page["runs"]]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert seen == jobs[::-1]


async def test_the_cursor_of_one_history_does_not_open_another(nightly):
    await nightly.put("nightly", overlap="allow")
    await nightly.put("other")
    for _ in range(2):
        await nightly.call("POST", f"{HERE}/trigger")
    cursor = (await nightly.call("GET", f"{HERE}/runs?limit=1")).json["next"]
    response = await nightly.call("GET", f"/v1/schedules/other/runs?cursor={cursor}")
    assert (response.status, response.code) == (400, "invalid-cursor")


async def test_a_preview_marks_the_changes_of_the_clocks(nightly):
    path = f"{HERE}/preview?count=3&after=2030-03-30T00:00:00Z"
    runs = (await nightly.call("GET", path)).json["runs"]
    assert runs == [
        {"utc": "2030-03-30T01:30:00Z", "local": "2030-03-30T02:30:00+01:00", "mark": None},
        {
            "utc": "2030-03-31T01:00:00Z",
            "local": "2030-03-31T03:00:00+02:00",
            "mark": "moved out of a gap",
        },
        {"utc": "2030-04-01T00:30:00Z", "local": "2030-04-01T02:30:00+02:00", "mark": None},
    ]


async def test_a_preview_begins_now_and_tells_of_the_jitter(nightly):
    await nightly.put("nightly", jitter=3600)
    found = (await nightly.call("GET", f"{HERE}/preview")).json
    assert len(found["runs"]) == 10
    spec = (await nightly.call("GET", HERE)).json["spec"]
    assert found["shift"] == spec["shift"] > 0


@pytest.mark.parametrize(
    "query", ["count=0", "count=101", "after=now", "after=1960-01-01T00:00:00Z", "until=x"]
)
async def test_a_preview_that_cannot_be_is_refused(nightly, query):
    response = await nightly.call("GET", f"{HERE}/preview?{query}")
    assert (response.status, response.code) == (400, "invalid-query")


async def test_of_two_changes_at_once_neither_is_lost(nightly):
    answers = await asyncio.gather(
        nightly.call("PATCH", HERE, send={"max_runs": 7}),
        nightly.call("PATCH", HERE, send={"jitter": 5}),
        nightly.call("PATCH", HERE, send={"window": 60}),
    )
    assert [answer.status for answer in answers] == [200, 200, 200]
    found = (await nightly.call("GET", HERE)).json
    spec = found["spec"]
    assert (spec["max_runs"], spec["jitter"], spec["window"]) == (7, 5, 60)
    assert found["version"] == 4


async def test_a_changed_schedule_is_foretold_before_anybody_has_looked_at_it(nightly):
    """The store has it looked at at once after a change; that is no run."""
    changed = await change(nightly, cron="0 4 * * *")
    foretold = (await nightly.call("GET", f"{HERE}/preview?count=1")).json["runs"][0]
    assert changed["next_run"] == foretold["utc"]
    assert (await nightly.call("GET", HERE)).json["next_run"] == foretold["utc"]


async def test_what_may_run_once_stays_so_while_nobody_publishes_its_type(make):
    scene = make(http_unknown_types=1)
    await scene.publish("charge", delivery="at_most_once")
    await scene.put("nightly")
    elsewhere = make(http_unknown_types=1)
    elsewhere.service.catalog.get = _nothing
    assert (await elsewhere.call("PATCH", HERE, send={"priority": "low"})).status == 200
    assert (await scene.call("POST", f"{HERE}/trigger")).status == 200
    assert (await scene.claim()).job.delivery is Delivery.AT_MOST_ONCE
