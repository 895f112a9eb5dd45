"""The document says what the service does: it is made of the same declarations."""

import json

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from lamplighter.config import Settings
from lamplighter.server import openapi
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.route import Route, Table
from lamplighter.server.routes import TABLE
from lamplighter.server.waits import LONGEST_WAIT, OF_THE_TIME

DOCUMENT = json.loads(json.dumps(openapi.document(TABLE)))
OPERATIONS = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def check(schema: dict, value: object) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.validate(whole, value)


def named(operation: tuple[str, str, dict]) -> str:
    return operation[2]["operationId"]


def test_the_document_keeps_the_standard():
    OpenAPIV31SpecValidator(DOCUMENT).validate()


async def test_the_service_gives_the_document(scene):
    assert (await scene.call("GET", "/v1/openapi.json")).json == DOCUMENT


def test_every_route_is_described_once():
    described = {(method.upper(), path) for path, method, _ in OPERATIONS}
    assert described == {(route.method, route.path) for route in TABLE}
    names = [operation["operationId"] for *_, operation in OPERATIONS]
    assert len(set(names)) == len(names)


def test_routes_that_anybody_may_call_are_few():
    free = {route.path for route in TABLE if not route.asks}
    page = {"/", "/favicon.svg", "/assets/{name}", "/v1/reference", "/v1/reference.css"}
    assert free == {"/healthz", "/readyz", "/v1/openapi.json", "/v1/session", *page}


def test_what_changes_something_needs_more_than_reading():
    looks = {"/v1/schedules:preview", "/v1/session"}
    for route in TABLE:
        if route.method != "GET" and route.path not in looks:
            assert route.scope not in {None, Scope.JOBS_READ, Scope.SCHEDULES_READ}


def test_a_route_cannot_be_declared_twice():
    with pytest.raises(ValueError, match="twice"):
        Table([*TABLE, next(iter(TABLE))])


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_every_example_fits_its_schema(operation):
    _, _, described = operation
    for response in described["responses"].values():
        for content in response["content"].values():
            examples = [each["value"] for each in content.get("examples", {}).values()]
            for example in [content["example"]] if "example" in content else examples:
                check(content["schema"], example)
    for content in described.get("requestBody", {"content": {}})["content"].values():
        check(content["schema"], content["example"])


def route_of(path: str, method: str) -> Route:
    return TABLE.paths[path][method.upper()]


ARGUMENTS = {"arguments": {"order_id": "o"}}
CHARGE = {"type": "charge", **ARGUMENTS}
BODIES = {
    "/v1/session": {"replace": False},
    "/v1/jobs": CHARGE,
    "/v1/jobs:batch": [CHARGE],
    "/v1/jobs:change": {"action": "hold", "all": True, "reason": "because"},
    "/v1/schedules": {**CHARGE, "every": 60},
    "/v1/schedules:preview": {**CHARGE, "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "/v1/schedules/{id}": {"max_runs": 5},
    "/v1/schedules/{id}/backfill": {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"},
    "/v1/dlq:retry": {"all": True, "dry_run": True},
    "/v1/dlq:replay": {"all": True, "dry_run": True},
    "/v1/dlq:purge": {"fingerprint": ["f-1"]},
    "/v1/queues/{name}": {"held": False},
    "/v1/tenants/{name}": {"weight": 2},
}
"""What is sent to the routes that take something."""
QUERIES = {"/v1/events": "?topic=queues"}
MAY_BE_GONE = ("/v1/jobs/", "/v1/session", "/tenants/", "/assets/", "/favicon.svg")
"""Where there may be nothing, after what was done before."""


async def test_answers_fit_what_is_declared(scene):
    job_id = await scene.submit()
    claim = await scene.claim()
    await scene.log(claim, "one")
    await scene.fail(claim)
    for path, method, described in OPERATIONS:
        await scene.put("nightly")
        named = {"id": "nightly" if "schedules" in path else job_id, "name": "payments"}
        if described["operationId"] == "queues.remove":
            named["name"] = "idle"
            await scene.call("PUT", "/v1/queues/idle", send={"held": False})
        send, query = BODIES.get(path), QUERIES.get(path, "")
        response = await scene.call(method.upper(), path.format(**named) + query, send=send)
        assert response.status < 400 or any(part in path for part in MAY_BE_GONE), response.body
        declared = described["responses"][str(response.status)]["content"]
        media = response.headers["content-type"].partition(";")[0]
        body = response.json if "json" in media else response.body.decode()
        check(declared.get(media, declared.get("*/*"))["schema"], body)


GENERAL = {
    "cache-control",
    "content-encoding",
    "content-length",
    "content-security-policy",
    "content-type",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    "vary",
    "www-authenticate",
    "x-accel-buffering",
    "x-content-type-options",
    "x-frame-options",
}
"""Headers that no program has to know of: their meaning is that of HTTP."""


def undeclared(response, described: dict) -> set[str]:
    """Give the headers of an answer that the document does not list for its status."""
    declared = described["responses"][str(response.status)].get("headers", {})
    return set(response.headers) - GENERAL - {name.lower() for name in declared}


async def test_headers_of_answers_are_declared(make):
    scene = make(http_rate=1_000.0, http_burst=1_000)
    await scene.publish("charge")
    job_id = await scene.submit()
    for path, method, described in OPERATIONS:
        await scene.put("nightly")
        target = path.format(id="nightly" if "schedules" in path else job_id, name="payments")
        target += QUERIES.get(path, "")
        response = await scene.call(method.upper(), target, send=BODIES.get(path))
        assert undeclared(response, described) == set(), target
        assert "x-request-id" in response.headers
        refused = await scene.call(method.upper(), f"{target}?unknown=1", send=BODIES.get(path))
        assert undeclared(refused, described) == set(), target


async def test_headers_of_refusals_that_say_when_to_come_again_are_declared(make):
    scene = make(http_rate=0.001, http_burst=1)
    scene.become(Principal(name="ada"))
    described = DOCUMENT["paths"]["/v1/jobs"]["get"]
    await scene.call("GET", "/v1/jobs")
    refused = await scene.call("GET", "/v1/jobs")
    assert refused.status == 429
    assert {"retry-after", "ratelimit-limit", "ratelimit-remaining"} <= set(refused.headers)
    assert undeclared(refused, described) == set()
    for *_, operation in OPERATIONS:
        for status in {"429", "503"} & set(operation["responses"]):
            assert "Retry-After" in operation["responses"][status]["headers"], operation


# ── limits ───────────────────────────────────────────────────────────────────────────────────

UNLIMITED = {
    "delay": "not beyond the year 9999, which depends on when it is sent",
    "max_attempts": "any number of attempts",
    "max_runs": "any number of runs",
    "hold_after": "any number of runs",
    "version": "compared with what there is, and nothing else",
    "limit": "more than a page has is cut to that, and not refused",
}
"""Numbers that may be as large as a caller likes, and why."""


def resolved(schema: dict) -> dict:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def leaves(name: str, schema: dict):
    """Give the texts, numbers and lists of a schema, each by the name of its field."""
    schema = resolved(schema)
    for each in schema.get("anyOf", ()):
        yield from leaves(name, each)
    for field, each in schema.get("properties", {}).items():
        yield from leaves(field, each)
    if schema.get("type") in {"string", "number", "integer", "array"}:
        yield name, schema
    if schema.get("type") == "array":
        yield from leaves(name, schema["items"])


def is_limited(name: str, schema: dict) -> bool:
    match schema["type"]:
        case "string":
            return bool({"enum", "const", "maxLength"} & set(schema)) or (
                schema.get("format") == "date-time"
            )
        case "array":
            return "maxItems" in schema
        case _:
            least = {"minimum", "exclusiveMinimum"} & set(schema)
            return name in UNLIMITED or ("maximum" in schema and bool(least))


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_all_that_callers_send_has_a_limit(operation):
    _, _, described = operation
    sent = [(each["name"], each["schema"]) for each in described.get("parameters", ())]
    bodies = described.get("requestBody", {"content": {}})["content"].values()
    sent += [("body", content["schema"]) for content in bodies]
    found = [leaf for name, schema in sent for leaf in leaves(name, schema)]
    assert [leaf for leaf in found if not is_limited(*leaf)] == []


SCHEMAS = DOCUMENT["components"]["schemas"]
FIELDS = {
    "PreviewBody": {**SCHEMAS["PreviewBody"]["properties"], "retry": {}},
    "RetryPolicy": SCHEMAS["RetryPolicy"]["properties"],
}
NUMBERS = [
    pytest.param(holder, name, leaf, id=f"{holder}.{name}")
    for holder, fields in FIELDS.items()
    for name, leaf in leaves("", {"properties": fields})
    if leaf["type"] in {"number", "integer"}
]
TEXTS = [
    pytest.param(name, leaf, id=name)
    for name, leaf in leaves("", {"properties": FIELDS["PreviewBody"]})
    if leaf["type"] == "string" and name in {"cron", "rrule", "timezone", "id", "type", "queue"}
]


def preview_of(name: str, value: object, *, retry: bool = False) -> dict:
    """Make a body in which this field has this value, and all others fit it."""
    if retry:
        listed = [value] if name == "delays" else value
        return {"type": "charge", "retry": {name: listed}, "every": 60, **ARGUMENTS}
    when = {} if name in {"every", "cron", "rrule", "at"} else {"cron": "30 2 * * *"}
    return {"type": "charge", **ARGUMENTS, **when, name: value}


@pytest.mark.parametrize(("holder", "name", "leaf"), NUMBERS)
async def test_the_limits_of_numbers_are_those_that_are_enforced(scene, holder, name, leaf):
    async def status(value: float) -> int:
        body = preview_of(name, value, retry=holder == "RetryPolicy")
        return (await scene.call("POST", "/v1/schedules:preview", send=body)).status

    least, most = leaf["minimum"], leaf.get("maximum")
    assert await status(least) == 200
    assert await status(least - 0.5 if leaf["type"] == "number" else least - 1) == 422
    if name not in UNLIMITED:
        assert await status(most) == 200
        assert await status(most + 1) == 422


@pytest.mark.parametrize(("name", "leaf"), TEXTS)
async def test_the_limits_of_texts_are_those_that_are_enforced(scene, name, leaf):
    body = preview_of(name, "x" * (leaf["maxLength"] + 1))
    assert (await scene.call("POST", "/v1/schedules:preview", send=body)).status == 422


async def test_the_limits_of_queues_and_pages_are_those_that_are_enforced(scene):
    leaf = dict(leaves("", SCHEMAS["QueueChange"]))["max_wait_seconds"]
    for value, status in (
        (leaf["minimum"], 200),
        (leaf["minimum"] / 2, 422),
        (leaf["maximum"], 200),
        (leaf["maximum"] + 1, 422),
    ):
        body = {"max_wait_seconds": value}
        assert (await scene.call("PUT", "/v1/queues/payments", send=body)).status == status
    for path in ("/v1/jobs", "/v1/schedules", "/v1/schedules/{id}/runs", "/v1/audit"):
        (limit,) = (
            each["schema"]
            for each in DOCUMENT["paths"][path]["get"]["parameters"]
            if each["name"] == "limit"
        )
        assert (limit["minimum"], "maximum" in limit) == (1, False)
    more = scene.service.settings.http_page + 1
    assert (await scene.call("GET", f"/v1/jobs?limit={more}")).status == 200


def test_the_document_says_how_large_arguments_may_be():
    for holder in ("Submission", "NewScheduleBody", "PreviewBody", "ScheduleChange"):
        for field in ("arguments", "metadata"):
            assert "64 KiB" in SCHEMAS[holder]["properties"][field]["description"], holder


def test_the_document_says_how_long_a_request_waits():
    (wait,) = (
        each
        for each in DOCUMENT["paths"]["/v1/jobs/{id}"]["get"]["parameters"]
        if each["name"] == "wait"
    )
    assert wait["schema"]["maximum"] == LONGEST_WAIT
    assert f"{Settings().http_timeout * OF_THE_TIME:g} s" in wait["description"]


async def test_refusals_are_declared(scene):
    for path, method, described in OPERATIONS:
        for headers, query, send in (
            ({"host": "evil.example"}, "", {}),
            ({}, "?unknown=1", {}),
            ({}, "", []),
            ({}, "", {"type": "unknown"}),
            ({"x": "y" * 20_000}, "", {}),
            ({"content-type": "text/plain"}, "", {}),
            ({"idempotency-key": "k"}, "", {}),
        ):
            target = path.format(id="nobody", name="nobody") + query
            response = await scene.call(method.upper(), target, send=send, headers=headers)
            assert str(response.status) in described["responses"], (target, response.body)
            if response.status >= 400:
                problem = described["responses"][str(response.status)]["content"]
                codes = problem["application/problem+json"]["examples"]
                assert response.code in codes
