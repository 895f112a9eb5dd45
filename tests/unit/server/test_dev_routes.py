"""The routes of `lamplighter dev`: only there, and only for who may do everything."""

import json

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from lamplighter.server import openapi
from lamplighter.server.application import application
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.route import Table
from lamplighter.server.routes import TABLE
from lamplighter.server.routes.dev import Dev, DevChild, routes
from tests.unit.server.conftest import Caller


class Stage:
    """A worker whose children can be killed until none is left."""

    def __init__(self) -> None:
        self.pids = [4711, 4712]

    def facts(self) -> Dev:
        return Dev(
            program="shop:app",
            speed=1.0,
            children=[DevChild(pid=pid, state="ready", running=0) for pid in self.pids],
            killed=2 - len(self.pids),
            lost=0,
            recovering=False,
            recovered_seconds=None,
        )

    def kill(self) -> int | None:
        return self.pids.pop() if self.pids else None


@pytest.fixture
def table() -> Table:
    return Table([*TABLE, *routes(Stage())])


@pytest.fixture
def dev(scene, table) -> Caller:
    return Caller(application(scene.service, table))


async def test_they_exist_nowhere_else(call):
    assert (await call("GET", "/v1/dev")).code == "unknown-path"
    assert (await call("POST", "/v1/dev/kill-worker")).code == "unknown-path"


async def test_children_are_killed_one_by_one_until_there_is_none(dev):
    assert (await dev("POST", "/v1/dev/kill-worker")).json == {"pid": 4712}
    assert (await dev("POST", "/v1/dev/kill-worker")).json == {"pid": 4711}
    assert (await dev("GET", "/v1/dev")).json["killed"] == 2
    refused = await dev("POST", "/v1/dev/kill-worker")
    assert (refused.status, refused.code) == (409, "wrong-state")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/dev"), ("POST", "/v1/dev/kill-worker")])
async def test_they_need_every_right(scene, dev, method, path):
    scene.become(Principal(name="a", scopes=frozenset(Scope) - {Scope.ADMIN}))
    assert (await dev(method, path)).code == "forbidden"
    scene.become(Principal(name="a", tenant="a"))
    assert (await dev(method, path)).code == "forbidden"


async def test_they_are_described_like_all_others(dev, table):
    document = json.loads(json.dumps(openapi.document(table)))
    OpenAPIV31SpecValidator(document).validate()
    assert (await dev("GET", "/v1/openapi.json")).json == document
    for path in ("/v1/dev", "/v1/dev/kill-worker"):
        (operation,) = document["paths"][path].values()
        content = operation["responses"]["200"]["content"]["application/json"]
        whole = {**content["schema"], "components": document["components"]}
        jsonschema_rs.validate(whole, content["example"])
