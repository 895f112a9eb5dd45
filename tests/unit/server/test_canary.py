"""What belongs to one tenant is in nothing that another can read.

On whichever store the fixture `url` names: engines with a server run the same with theirs.
"""

import json

import pytest

from lamplighter import runtime
from lamplighter.model.ids import compose
from lamplighter.model.job import ErrorInfo, Extras, Level, NewJob
from lamplighter.model.journal import Journal, Line, Piece, Progress, pack
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.values import ClaimRequest, NewWorker, Recording, TypeInfo
from lamplighter.server.auth import Principal
from lamplighter.server.routes import TABLE
from tests.unit.server.test_openapi import BODIES

CANARY = "kanarienvogel"
ID = f"{CANARY}-schedule"
A = Principal(name="a", tenant="a")
B = Principal(name=f"b-{CANARY}", tenant=f"b-{CANARY}")


class Aviary:
    """The things of tenant B, with the canary in every field that can hold it."""

    def __init__(self, scene) -> None:
        self.scene = scene
        self.ids: list[str] = []

    async def fill(self) -> None:
        await self.scene.service.open()
        self.scene.become(B)
        await self._publish()
        for number, end in enumerate((self._fail, self._succeed, self._run, None)):
            job_id = await self._submit(number)
            if end is not None:
                await end(await self._claim())
            self.ids.append(job_id)
        waiting = self.ids[-1]
        await self.call("POST", f"/v1/jobs/{waiting}/hold?reason={CANARY}")
        await self.call("DELETE", f"/v1/jobs/{self.ids[2]}?reason={CANARY}")
        body = {
            "id": ID,
            "type": CANARY,
            "arguments": {CANARY: CANARY},
            "queue": CANARY,
            "tags": [CANARY],
            "metadata": {CANARY: CANARY},
            "cron": "30 2 * * *",
        }
        assert (await self.call("POST", "/v1/schedules", body)).status == 201
        await self.call("POST", f"/v1/schedules/{ID}/trigger?reason={CANARY}")
        await self.call("POST", f"/v1/schedules/{ID}/hold?reason={CANARY}")

    async def call(self, method: str, target: str, send=None):
        return await self.scene.call(method, target, send=send)

    async def _publish(self) -> None:
        shared = TypeInfo(name="charge", schema="{}", hash="h", queue="payments")
        worker = NewWorker(
            id=f"w-{CANARY}", host=CANARY, pid=1, queues=(CANARY,), slots=5, types=(shared,)
        )
        await (await self.scene.engine()).membership.join(worker)

    async def _submit(self, number: int) -> str:
        new = NewJob(
            id=compose(runtime.now_ms(), number, number),
            type=CANARY,
            args=json.dumps({CANARY: CANARY}).encode(),
            queue=CANARY,
            level=Level.NORMAL,
            tenant=B.tenant or "",
            extras=Extras(tags=(CANARY,), metadata={CANARY: CANARY}),
        )
        await (await self.scene.engine()).jobs.submit([new])
        return new.id

    async def _claim(self):
        request = ClaimRequest(
            nonce=runtime.nonce(),
            worker=f"w-{CANARY}",
            queues=((CANARY, 1),),
            types=(CANARY,),
            limit=1,
            lease_ms=30_000,
        )
        engine = await self.scene.engine()
        (claim,) = (await engine.jobs.claim(request)).claims
        line = Line(0, 5, "info", CANARY)
        journal = Journal(progress=Progress(done=1, note=CANARY), pieces=(Piece(0, pack([line])),))
        await engine.jobs.record([Recording(claim.job.id, claim.fence, journal)])
        return claim

    async def _fail(self, claim) -> None:
        error = ErrorInfo(type=CANARY, message=CANARY, traceback=CANARY, fingerprint=CANARY)
        ended = settle(claim, Failed(error), retry=Retry(max_attempts=1))
        await (await self.scene.engine()).jobs.settle([ended])

    async def _succeed(self, claim) -> None:
        ended = settle(claim, Succeeded(json.dumps(CANARY).encode()))
        await (await self.scene.engine()).jobs.settle([ended])

    async def _run(self, claim) -> None:
        """Leave it running."""

    def targets(self, route) -> list[str]:
        """All addresses of a route at which there is something of tenant B."""
        if "/schedules/{id}" in route.path:
            return [route.path.format(id=ID)]
        if "{id}" in route.path:
            return [route.path.format(id=job_id) for job_id in self.ids]
        if "{name}" in route.path:
            name = B.tenant if "tenants" in route.path else CANARY
            return [route.path.format(name=name)]
        if route.name == "events.listen":
            topics = [f"job:{job_id}" for job_id in self.ids]
            topics += ["overview", "workers", "queues", "dlq", "schedules"]
            return [f"{route.path}?topic={topic}" for topic in topics]
        return [route.path, *(f"{route.path}?{query}" for query in self._queries(route))]

    def _queries(self, route) -> list[str]:
        """What a caller may try in order to see more."""
        known = set(route.query.__struct_fields__)
        tried = {
            "tenant": (B.tenant, "a"),
            "type": (CANARY,),
            "queue": (CANARY,),
            "tag": (CANARY,),
            "fingerprint": (CANARY,),
            "status": ("dead", "succeeded", "running", "paused"),
            "prefix": (CANARY[:4],),
            "limit": ("500",),
            "minutes": ("60",),
        }
        return [
            f"{name}={value}" for name, values in tried.items() if name in known for value in values
        ]


@pytest.fixture
async def aviary(make):
    made = Aviary(make(http_unknown_types=1))
    await made.fill()
    return made


def leaked(target: str, body: bytes) -> bool:
    """Tell whether an answer has the canary in a place where the caller has not put it."""
    text = body.decode()
    asked = target.partition("?")[0] + target
    if CANARY in asked:
        # An error may name what was asked for, and nothing more of it.
        problem = json.loads(text) if text.startswith("{") else {}
        if "code" in problem:
            text = problem["code"] + problem["title"]
    return CANARY in text


SHOWN_TO_THEIR_OWN = {
    "jobs.list_jobs",
    "job.show",
    "job.logs",
    "job.attempts",
    "job.why",
    "job.given",
    "schedules.list_schedules",
    "schedule.show",
    "dlq.list_groups",
    "tenants.show",
    "audit.list_audit",
    "me.show",
}


async def test_the_canary_sings_for_its_own_tenant(aviary):
    heard = set()
    for route in TABLE:
        if route.method == "GET" and route.name != "events.listen":
            for target in aviary.targets(route):
                response = await aviary.call("GET", target)
                if response.status == 200 and CANARY in response.body.decode():
                    heard.add(route.name)
    assert heard >= SHOWN_TO_THEIR_OWN


@pytest.mark.parametrize("route", list(TABLE), ids=lambda route: route.name)
async def test_nothing_of_it_is_heard_by_another(aviary, route):
    aviary.scene.become(A)
    send = BODIES.get(route.path) if route.body is not None else None
    for target in aviary.targets(route):
        response = await aviary.call(route.method, target, send)
        assert response.status < 500, (target, response.body)
        assert not leaked(target, response.body), (target, response.body)
        assert not leaked(target, json.dumps(response.headers).encode()), target


async def test_nothing_of_it_is_changed_by_another(aviary):
    engine = await aviary.scene.engine()

    async def state():
        jobs = [await engine.inspector.job(job_id) for job_id in aviary.ids]
        return jobs, await engine.schedules.schedule(ID, tenant=B.tenant)

    before = await state()
    aviary.scene.become(A)
    for route in TABLE:
        if route.method == "GET":
            continue
        send = BODIES.get(route.path) if route.body is not None else None
        if route.name in {"dlq.retry", "dlq.replay", "dlq.purge"}:
            send = {"fingerprint": [CANARY]}
        for target in aviary.targets(route):
            await aviary.call(route.method, target, send)
    assert (await engine.schedules.schedule(ID, tenant=B.tenant)) is not None
    body = {**BODIES["/v1/schedules"], "id": ID}
    assert (await aviary.call("POST", "/v1/schedules", body)).status == 201
    body = {**BODIES["/v1/jobs"], "schedule": {"every": 60, "id": ID}}
    assert (await aviary.call("POST", "/v1/jobs", body)).status == 200
    assert await state() == before


async def test_a_key_of_one_tenant_says_nothing_to_another(aviary):
    made = []
    for principal in (B, A):
        aviary.scene.become(principal)
        headers = {"Idempotency-Key": "same"}
        response = await aviary.scene.call(
            "POST", "/v1/jobs", send=BODIES["/v1/jobs"], headers=headers
        )
        assert response.status == 201
        made.append(response.json["id"])
    assert made[0] != made[1]
