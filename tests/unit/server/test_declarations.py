"""Every route has said who may call it, and whether it may be sent twice."""

import pytest

from lamplighter.server.route import route as declare
from tests.unit.server.test_matrix import OBJECTS, ROUTES
from tests.unit.server.test_openapi import BODIES

OPEN = {
    "health.alive",
    "health.ready",
    "document.show",
    "reference.page",
    "reference.style",
    "console.page",
    "console.file",
    "console.sign",
    "session.begin",
}
"""Routes that ask nobody who they are: nothing in them comes from a job."""
SIFTED = {
    "jobs.submit",
    "jobs.submit_batch",
    "jobs.list_jobs",
    "jobs.change",
    "schedules.put",
    "schedules.list_schedules",
    "dlq.list_groups",
    "dlq.retry",
    "dlq.replay",
    "dlq.purge",
    "audit.list_audit",
    "events.listen",
}
"""Routes that do for a tenant what they do, and with its own things alone."""
SHARED = {"types.list_types", "me.show", "session.end"}
"""Routes that answer all tenants the same, or about the caller only."""
COMPUTED = {"schedules.preview"}
"""Routes that only work something out of what they are given."""


def test_a_route_cannot_be_declared_without_a_scope():
    with pytest.raises(TypeError, match="scope"):
        declare("GET", "/v1/new", summary="New.", answers=[])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_has_decided_who_may_call_it(route):
    assert route.asks != (route.name in OPEN)
    if route.scope is None:
        # A session is begun by who cannot say who they are yet, and ended by who has it.
        assert route.method == "GET" or route.path == "/v1/session"
    single = route.path.startswith(OBJECTS)
    decided = (
        not route.asks,
        route.whole,
        single and not route.whole,
        route.name in SIFTED,
        route.name in SHARED | COMPUTED,
    )
    assert sum(decided) == 1, f"say what {route.name} is for whoever has one tenant"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_a_key_is_refused_by_routes_that_change_something_and_do_not_heed_it(scene, route):
    path = route.path.format(id="a", name="a")
    response = await scene.call(
        route.method, path, send=BODIES.get(route.path), headers={"Idempotency-Key": "k"}
    )
    reads = route.method == "GET" or route.name in COMPUTED
    refused = response.status == 422 and "Idempotency-Key" in response.json["detail"]
    assert refused == (not reads and not route.keyed)
