"""POST /v1/jobs and /v1/jobs:batch."""

import asyncio
import json

import pytest

from lamplighter import App
from lamplighter.model.ids import shard_of
from lamplighter.model.job import Level

GOOD = {"type": "charge", "arguments": {"order_id": "o-1", "cents": 5}}


async def post(scene, body, **headers):
    return await scene.call("POST", "/v1/jobs", send=body, headers=headers)


async def test_a_job_is_stored_as_it_was_submitted(scene):
    response = await post(
        scene,
        {
            **GOOD,
            "delay": 60,
            "priority": "high",
            "tenant": "acme",
            "timeout": 5,
            "tags": ["eu"],
            "metadata": {"source": "import"},
            "retry": {"delays": [1, 2], "no_retry_on": ["ValueError"]},
        },
    )
    assert response.status == 201
    assert response.json["answer"] == "created"
    record = await (await scene.engine()).inspector.job(response.json["id"])
    job = record.job
    assert json.loads(job.args) == GOOD["arguments"]
    assert (job.queue, job.level, job.tenant) == ("payments", Level.HIGH, "acme")
    assert (job.extras.timeout, job.extras.tags) == (5, ("eu",))
    assert job.extras.metadata == {"source": "import"}
    assert job.extras.retry.delays == (1.0, 2.0)
    assert record.status.value == "scheduled"


async def test_the_answer_says_where_the_job_is(scene):
    response = await post(scene, GOOD)
    shown = await scene.call("GET", response.headers["location"])
    assert shown.status == 200
    assert shown.json["id"] == response.json["id"]


async def test_an_instant_is_taken_instead_of_a_delay(scene):
    response = await post(scene, {**GOOD, "run_at": "2030-01-31T12:00:00+01:00"})
    shown = await scene.call("GET", response.headers["location"])
    assert shown.json["next_run"] == "2030-01-31T11:00:00Z"


async def test_the_same_key_and_body_give_the_same_job(scene):
    header = {"Idempotency-Key": "k-1"}
    first = await post(scene, GOOD, **header)
    second = await post(scene, GOOD, **header)
    assert (first.status, second.status) == (201, 200)
    assert second.json == {"id": first.json["id"], "answer": "already"}


async def test_of_many_at_once_with_one_key_one_is_stored(scene):
    header = {"Idempotency-Key": "k-1"}
    answers = await asyncio.gather(*(post(scene, GOOD, **header) for _ in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1


async def test_what_a_schema_quotes_is_cut_short(scene):
    body = {"type": "charge", "arguments": {"order_id": ["x" * 1000] * 20}}
    response = await post(scene, body)
    assert response.code == "invalid-arguments"
    assert len(response.body) < 1000


async def test_the_same_key_with_another_body_is_a_conflict(scene):
    header = {"Idempotency-Key": "k-1"}
    await post(scene, GOOD, **header)
    response = await post(scene, {**GOOD, "delay": 1}, **header)
    assert response.status == 409
    assert response.code == "key-conflict"


async def test_keys_that_are_not_utf_8_are_refused_and_none_becomes_another(scene):
    for key in ("é-1", "è-1"):
        response = await post(scene, GOOD, **{"Idempotency-Key": key.encode("latin-1")})
        assert (response.status, response.code) == (422, "invalid-option")
        assert key in response.json["detail"]
    ids = [(await post(scene, GOOD, **{"Idempotency-Key": k})).json["id"] for k in ("é-1", "è-1")]
    assert ids[0] != ids[1]


async def test_a_key_that_comes_twice_is_refused(scene):
    for second in ("a", "b"):
        response = await post(scene, GOOD, **{"Idempotency-Key": "a", "idempotency-key": second})
        assert (response.status, response.code) == (422, "invalid-option")
    assert (await scene.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_keys_of_one_caller_are_not_those_of_another(make):
    one, two = "1" * 32, "2" * 32
    made = make(keys=[one, two])
    await made.publish("charge")
    ids = set()
    for key in (one, two, one):
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "k-1"}
        ids.add((await post(made, GOOD, **headers)).json["id"])
    assert len(ids) == 2


async def test_keys_of_http_are_not_those_of_the_python_client(scene):
    handle = await scene.app.submit("charge", GOOD["arguments"], idempotency_key="k-1")
    response = await post(scene, GOOD, **{"Idempotency-Key": "k-1"})
    assert response.status == 201
    assert response.json["id"] != handle.id


async def test_two_different_keys_for_one_job_are_refused(scene):
    response = await post(scene, {**GOOD, "idempotency_key": "a"}, **{"Idempotency-Key": "b"})
    assert response.status == 422
    assert response.code == "invalid-option"


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        ({"type": "unknown"}, "unknown-type", "`unknown`"),
        ({"type": "charge"}, "invalid-arguments", '"order_id" is a required property'),
        (
            {"type": "charge", "arguments": {"order_id": 3}},
            "invalid-arguments",
            "arguments.order_id",
        ),
        (
            {"type": "charge", "arguments": {"order_id": "o", "cents": -1}},
            "invalid-arguments",
            "arguments.cents",
        ),
        (
            {"type": "charge", "arguments": {"order_id": "a\0b"}},
            "invalid-payload",
            "arguments.order_id",
        ),
        ({**GOOD, "arguments": [1]}, "invalid-body", "$.arguments"),
        ({"arguments": {}}, "invalid-body", "`type`"),
        ({**GOOD, "urgency": "high"}, "invalid-body", "`urgency`"),
        ({**GOOD, "priority": "urgent"}, "invalid-body", "urgent"),
        ({**GOOD, "run_at": "2030-01-31T12:00:00"}, "invalid-body", "$.run_at"),
        ({**GOOD, "run_at": "2030-01-31T12:00:00Z", "delay": 1}, "invalid-option", "delay"),
        ({**GOOD, "delay": -1}, "invalid-time", "`-1"),
        ({**GOOD, "delay": 1e300}, "invalid-time", "9999"),
        ({**GOOD, "timeout": 0}, "invalid-time", "timeout"),
        ({**GOOD, "queue": ""}, "invalid-name", "queue"),
        ({**GOOD, "tenant": "x" * 65}, "invalid-name", "tenant"),
        ({**GOOD, "tags": ["a\nb"]}, "invalid-name", "tag"),
        ({**GOOD, "idempotency_key": ""}, "invalid-name", "key"),
        ({**GOOD, "retry": {"max_attempts": 0}}, "invalid-option", "max_attempts"),
        ({**GOOD, "retry": {"no_retry_on": [1]}}, "invalid-body", "no_retry_on"),
        ({"type": "", "arguments": {}}, "invalid-name", "job type"),
        ([], "invalid-body", "object"),
        ("text", "invalid-body", "object"),
    ],
)
async def test_what_cannot_be_a_job_is_refused_with_its_place(scene, body, code, named):
    response = await post(scene, body)
    assert response.status == 422
    assert response.code == code
    assert named in response.json["detail"]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ({**GOOD, "delay": "soon"}, "soon"),
        ({**GOOD, "delay": True}, "true"),
        ({**GOOD, "retry": {"delays": [1, "é"]}}, "é"),
        ({**GOOD, "urgency": "high"}, "urgency"),
        ({"arguments": {}}, "type"),
        ({**GOOD, "tags": {"a": 1}}, "$.tags"),
        ({**GOOD, "arguments": "4111"}, "$.arguments"),
        (5, "5"),
        ([{"type": "charge", "arguments": {"card": "4111"}}], None),
    ],
)
async def test_what_does_not_fit_is_named_but_for_what_may_be_secret(scene, body, value):
    response = await post(scene, body)
    assert (response.status, response.code) == (422, "invalid-body")
    assert response.json["value"] == value
    assert value is None or value in response.json["detail"]
    assert b"4111" not in response.body


@pytest.mark.parametrize("media", ["application/json", "application/x-ndjson"])
async def test_what_does_not_fit_in_a_batch_is_named(scene, media):
    batch = [GOOD, {**GOOD, "delay": "soon"}]
    text = json.dumps(batch) if media.endswith("/json") else "\n\n".join(map(json.dumps, batch))
    response = await scene.call(
        "POST", "/v1/jobs:batch", raw=text.encode(), headers={"content-type": media}
    )
    assert (response.code, response.json["value"]) == ("invalid-body", "soon")
    assert "`$[1].delay`: `soon`" in response.json["detail"]


async def test_a_delay_beside_an_instant_is_refused_in_the_words_of_the_caller(scene):
    response = await post(scene, {**GOOD, "run_at": "2030-01-31T12:00:00Z", "delay": 1})
    assert (response.status, response.code) == (422, "invalid-option")
    problem = response.json
    assert problem["value"] == "2030-01-31T12:00:00Z"
    assert "run_at `2030-01-31T12:00:00+00:00`" in problem["detail"]
    assert "datetime" not in response.body.decode()


async def test_arguments_that_are_too_large_are_refused(scene):
    response = await post(scene, {**GOOD, "arguments": {"order_id": "x" * 65_536}})
    assert response.status == 413
    assert response.code == "payload-too-large"


async def test_the_value_of_a_secret_argument_is_not_quoted(make):
    made = make()
    await made.publish("charge", secrets=["card"])
    response = await post(made, {"type": "charge", "arguments": {"card": "4111-1111"}})
    assert response.code == "invalid-arguments"
    assert "4111" not in response.body.decode()


async def test_arguments_fit_if_any_live_version_takes_them(scene):
    await (await scene.engine()).membership.leave("w-1")
    from lamplighter.port.values import NewWorker, TypeInfo

    for number, required in enumerate(("old", "new")):
        schema = {"type": "object", "required": [required]}
        info = TypeInfo(name="move", schema=json.dumps(schema), hash=f"h-{number}", queue="default")
        worker = NewWorker(
            id=f"w-{number}", host="h", pid=1, queues=("default",), slots=1, types=(info,)
        )
        await (await scene.engine()).membership.join(worker)
    for argument, status in (("old", 201), ("new", 201), ("other", 422)):
        response = await post(scene, {"type": "move", "arguments": {argument: 1}})
        assert response.status == status


async def test_a_schema_that_leads_elsewhere_is_not_followed(make):
    made = make()
    await made.publish("charge", schema={"$ref": "http://127.0.0.1:1/schema.json"})
    assert (await post(made, GOOD)).status == 201


async def test_unknown_types_are_taken_where_the_setting_says_so(make):
    made = make(http_unknown_types=1)
    response = await post(made, {"type": "later", "arguments": {"x": 1}})
    assert response.status == 201


async def test_types_of_the_given_program_are_known_without_a_worker(make, tmp_path):
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.job(queue="mail")
    async def greet(name: str) -> None: ...

    made = make(app=app)
    created = await post(made, {"type": "greet", "arguments": {"name": "Ada"}})
    shown = await made.call("GET", created.headers["location"])
    assert shown.json["queue"] == "mail"
    refused = await post(made, {"type": "greet", "arguments": {"who": "Ada"}})
    assert refused.code == "invalid-arguments"


async def test_a_batch_is_answered_in_its_order(scene):
    items = [{**GOOD, "idempotency_key": key} for key in ("a", "b", "a")]
    response = await scene.call("POST", "/v1/jobs:batch", send=items)
    assert response.status == 200
    answers = [job["answer"] for job in response.json["jobs"]]
    assert answers == ["created", "created", "already"]
    assert response.json["created"] == 2
    assert response.json["jobs"][0]["id"] == response.json["jobs"][2]["id"]


async def test_a_batch_may_have_one_job_per_line(scene):
    raw = b"".join(json.dumps({**GOOD, "delay": n}).encode() + b"\n" for n in range(3))
    response = await scene.call(
        "POST", "/v1/jobs:batch", raw=raw, headers={"content-type": "application/x-ndjson"}
    )
    assert response.json["created"] == 3


async def test_a_key_belongs_to_one_job_alone_or_in_a_batch(scene):
    single = await post(scene, GOOD, **{"Idempotency-Key": "k"})
    batch = await scene.call("POST", "/v1/jobs:batch", send=[{**GOOD, "idempotency_key": "k"}])
    assert batch.json["jobs"] == [{"id": single.json["id"], "answer": "already"}]


async def test_a_key_for_a_whole_batch_is_refused_with_the_remedy(scene):
    headers = {"Idempotency-Key": "k"}
    response = await scene.call("POST", "/v1/jobs:batch", send=[GOOD], headers=headers)
    assert (response.status, response.code) == (422, "invalid-option")
    assert "`idempotency_key` in each job" in response.json["hint"]
    assert (await scene.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_one_bad_job_keeps_a_whole_batch_out_and_is_named(scene):
    response = await scene.call("POST", "/v1/jobs:batch", send=[GOOD, {"type": "unknown"}])
    assert response.status == 422
    assert response.code == "unknown-type"
    assert response.json["detail"].startswith("jobs[1]: ")
    assert (await scene.call("GET", "/v1/jobs")).json["jobs"] == []


async def test_a_conflict_in_a_batch_is_the_answer_for_that_job(scene):
    await post(scene, GOOD, **{"Idempotency-Key": "k"})
    items = [{**GOOD, "delay": 9, "idempotency_key": "k"}, GOOD]
    response = await scene.call("POST", "/v1/jobs:batch", send=items)
    assert [job["answer"] for job in response.json["jobs"]] == ["conflict", "created"]


async def test_an_empty_batch_stores_nothing(scene):
    response = await scene.call("POST", "/v1/jobs:batch", send=[])
    assert response.json == {"jobs": [], "created": 0}


async def test_a_batch_of_too_many_jobs_is_refused(make):
    made = make(http_batch_jobs=2)
    await made.publish("charge")
    response = await made.call("POST", "/v1/jobs:batch", send=[GOOD] * 3)
    assert response.status == 413
    assert response.code == "limit-exceeded"


async def test_a_batch_is_spread_by_the_hundred_over_a_store_in_shards(scene, monkeypatch):
    async def divided() -> bool:
        return True

    monkeypatch.setattr(scene.service.client, "is_divided", divided)
    items = [{**GOOD, "idempotency_key": f"k-{n}"} if n % 7 == 0 else GOOD for n in range(450)]

    jobs = (await scene.call("POST", "/v1/jobs:batch", send=items)).json["jobs"]

    found = [shard_of(job["id"]) for job in jobs]
    groups = [{found[n] for n in range(a, min(a + 100, 450)) if n % 7} for a in range(0, 450, 100)]
    assert [len(group) for group in groups] == [1] * 5
    assert len(set.union(*groups)) > 1
    keyed = {found[n] for n in range(0, 450, 7)}
    assert len(keyed) > 20  # each in the shard of its key


@pytest.mark.parametrize("key", [None, "k"])
async def test_keys_of_arguments_and_metadata_keep_their_order(make, key):
    scene = make(http_unknown_types=1)
    given = {"z": {"y": [{"q": 1, "b": 2}], "c": 3}, "a": 4}
    body = {"type": "take", "arguments": {"value": given}, "metadata": given}

    job_id = (await post(scene, body | ({"idempotency_key": key} if key else {}))).json["id"]

    found = (await scene.call("GET", f"/v1/jobs/{job_id}/input")).json
    assert json.dumps(found["arguments"]) == json.dumps({"value": given})
    assert json.dumps(found["metadata"]) == json.dumps(given)
