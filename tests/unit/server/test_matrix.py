"""Every route there is, asked by everybody there is: made of the table of routes itself.

On whichever store the fixture `url` names: engines with a server run the same with theirs.
"""

import pytest

from lamplighter import runtime
from lamplighter.model.access import digest_of, granted, token_of
from lamplighter.port.access import NewToken
from lamplighter.server.auth import Scope
from lamplighter.server.routes import TABLE
from tests.unit.server.test_openapi import BODIES

ROUTES = list(TABLE)
OWN, OTHER = "acme", "other"
OBJECTS = ("/v1/jobs/{id}", "/v1/schedules/{id}", "/v1/tenants/{name}")
"""Where single things are that belong to a tenant: for others they do not exist."""


class World:
    """A service with things of one tenant, and callers of all kinds."""

    def __init__(self, scene) -> None:
        self._scene = scene
        self._tokens: dict[tuple, str] = {}
        self._admin = ""

    async def begin(self) -> None:
        await self._scene.service.open()
        await self._scene.publish("charge")
        self._admin = await self.token(["admin"], None)
        await self.ask("POST", "/v1/jobs", self._admin, send=BODIES["/v1/jobs"] | {"tenant": OWN})

    async def token(self, scopes: list[str], tenant: str | None) -> str:
        known = self._tokens.get((*scopes, tenant))
        if known is None:
            prefix, known = token_of(runtime.random_bits(48), runtime.random_bits(256))
            new = NewToken(
                prefix=prefix,
                digest=digest_of(known),
                name="caller",
                scopes=tuple(scopes),
                tenant=tenant,
            )
            await (await self._scene.engine()).access.put_token(new, by="test")
            self._tokens[*scopes, tenant] = known
        return known

    async def ask(self, method: str, target: str, token: str | None, send=None):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self._scene.call(method, target, send=send, headers=headers)

    async def target(self, route) -> str:
        """Give the address of something new of the tenant, for this route."""
        names = {"name": OWN if "tenants" in route.path else "payments", "id": ""}
        if "/schedules/{id}" in route.path:
            names["id"] = f"s-{runtime.nonce()}"
            body = {**BODIES["/v1/schedules"], "id": names["id"], "tenant": OWN}
            assert (await self.ask("POST", "/v1/schedules", self._admin, body)).status == 201
        elif "{id}" in route.path or route.name == "events.listen":
            body = {**BODIES["/v1/jobs"], "tenant": OWN, "delay": 60}
            made = await self.ask("POST", "/v1/jobs", self._admin, body)
            names["id"] = made.json["id"]
        query = f"?topic=job:{names['id']}" if route.name == "events.listen" else ""
        return route.path.format(**names) + query


@pytest.fixture
async def world(make):
    made = World(make(tokens=True))
    await made.begin()
    return made


def expected(route, scope: Scope | None, tenant: str | None) -> set[int] | None:
    """Say with which statuses a caller is answered; None: as the route has it, but not refused."""
    if not route.asks:
        return None
    held = granted([scope.value]) if scope else frozenset()
    if route.scope is not None and route.scope not in held:
        return {403}
    if route.whole and tenant is not None:
        return {403}
    single = route.path.startswith(OBJECTS) or route.name == "events.listen"
    return {404} if single and tenant == OTHER else None


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_every_caller_may_do_what_is_declared_and_nothing_else(world, route):
    body = BODIES.get(route.path) if route.body is not None else None
    for scope in (None, *Scope):
        for tenant in (None, OWN, OTHER):
            token = await world.token([scope.value] if scope else [], tenant)
            response = await world.ask(route.method, await world.target(route), token, body)
            wanted = expected(route, scope, tenant)
            told = (route.name, scope, tenant, response.status, response.body[:300])
            if wanted is not None:
                assert response.status in wanted, told
                assert wanted != {403} or response.code == "forbidden", told
            else:
                assert response.status not in {401, 403}, told
                assert response.status < 500, told


async def test_who_does_not_say_who_they_are_gets_nothing(world):
    _, unknown = token_of(runtime.random_bits(48), runtime.random_bits(256))
    tried = ((None, "missing-token"), ("bad", "invalid-token"), (unknown, "invalid-token"))
    for route in ROUTES:
        target = await world.target(route)
        for token, code in tried:
            response = await world.ask(route.method, target, token)
            if route.asks:
                assert (response.status, response.code) == (401, code), route.name
            else:
                assert response.status != 401, route.name


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch", "/v1/schedules"])
async def test_nobody_submits_for_another_tenant(world, path):
    token = await world.token(["operator"], OTHER)
    given = BODIES[path]
    body = (
        [{**one, "tenant": OWN} for one in given]
        if isinstance(given, list)
        else {**given, "tenant": OWN}
    )
    response = await world.ask("POST", path, token, body)
    assert (response.status, response.code) == (403, "forbidden")


async def test_what_is_submitted_belongs_to_the_tenant_of_who_submits(world):
    token = await world.token(["operator"], OTHER)
    for path in ("/v1/jobs", "/v1/jobs:batch", "/v1/schedules"):
        assert (await world.ask("POST", path, token, BODIES[path])).status in {200, 201}
    jobs = (await world.ask("GET", "/v1/jobs", token)).json["jobs"]
    schedules = (await world.ask("GET", "/v1/schedules", token)).json["schedules"]
    assert [job["tenant"] for job in jobs] == [OTHER, OTHER]
    assert [schedule["tenant"] for schedule in schedules] == [OTHER]


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/schedules", "/v1/dlq", "/v1/audit"])
async def test_a_filter_for_another_tenant_finds_nothing(world, path):
    token = await world.token(["admin"], OTHER)
    response = await world.ask("GET", f"{path}?tenant={OWN}", token)
    assert response.status == 200
    (found, *_) = response.json.values()
    assert found == []
