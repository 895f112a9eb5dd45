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
    free = {route.path for route in TABLE if route.scope is None}
    assert free == {"/healthz", "/readyz", "/v1/openapi.json"}


def test_what_changes_something_needs_more_than_reading():
    for route in TABLE:
        if route.method != "GET":
            assert route.scope not in {None, Scope.JOBS_READ}


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


async def test_answers_fit_what_is_declared(scene):
    job_id = await scene.submit()
    claim = await scene.claim()
    await scene.log(claim, "one")
    await scene.fail(claim)
    for path, method, described in OPERATIONS:
        body = {"type": "charge", "arguments": {"order_id": "o"}}
        send = ([body] if "batch" in path else body) if method == "post" else None
        response = await scene.call(method.upper(), path.replace("{id}", job_id), send=send)
        declared = described["responses"][str(response.status)]["content"]
        check(declared[response.headers["content-type"]]["schema"], response.json)


async def test_refusals_are_declared(scene):
    for path, method, described in OPERATIONS:
        for headers, query, send in (
            ({"host": "evil.example"}, "", {}),
            ({}, "?unknown=1", {}),
            ({}, "", []),
            ({}, "", {"type": "unknown"}),
            ({"x": "y" * 20_000}, "", {}),
            ({"content-type": "text/plain"}, "", {}),
        ):
            target = path.replace("{id}", "nobody") + query
            response = await scene.call(method.upper(), target, send=send, headers=headers)
            assert str(response.status) in described["responses"], (target, response.body)
            if response.status >= 400:
                problem = described["responses"][str(response.status)]["content"]
                codes = problem["application/problem+json"]["examples"]
                assert response.code in codes
