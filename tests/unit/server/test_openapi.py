"""The document says what the service does: it is made of the same declarations."""

import json

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from lamplighter.server import openapi
from lamplighter.server.auth import Scope
from lamplighter.server.route import Route, Table
from lamplighter.server.routes import TABLE

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
    assert free == {"/healthz", "/readyz", "/v1/openapi.json", *page}


def test_what_changes_something_needs_more_than_reading():
    looks = {"/v1/schedules:preview"}
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


CHARGE = {"type": "charge", "arguments": {"order_id": "o"}}
BODIES = {
    "/v1/jobs": CHARGE,
    "/v1/jobs:batch": [CHARGE],
    "/v1/schedules": {**CHARGE, "every": 60},
    "/v1/schedules:preview": {**CHARGE, "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "/v1/schedules/{id}": {"max_runs": 5},
    "/v1/schedules/{id}/backfill": {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"},
    "/v1/dlq:replay": {"all": True, "dry_run": True},
    "/v1/dlq:purge": {"fingerprint": ["f-1"]},
    "/v1/queues/{name}": {"held": False},
    "/v1/tenants/{name}": {"weight": 2},
}
"""What is sent to the routes that take something."""
QUERIES = {"/v1/events": "?topic=queues"}
MAY_BE_GONE = ("/v1/jobs/", "/tenants/", "/assets/", "/favicon.svg")
"""Where there may be nothing, after what was done before."""


async def test_answers_fit_what_is_declared(scene):
    job_id = await scene.submit()
    claim = await scene.claim()
    await scene.log(claim, "one")
    await scene.fail(claim)
    for path, method, described in OPERATIONS:
        await scene.put("nightly")
        named = {"id": "nightly" if "schedules" in path else job_id, "name": "payments"}
        send, query = BODIES.get(path), QUERIES.get(path, "")
        response = await scene.call(method.upper(), path.format(**named) + query, send=send)
        assert response.status < 400 or any(part in path for part in MAY_BE_GONE), response.body
        declared = described["responses"][str(response.status)]["content"]
        media = response.headers["content-type"].partition(";")[0]
        body = response.json if "json" in media else response.body.decode()
        check(declared.get(media, declared.get("*/*"))["schema"], body)


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
