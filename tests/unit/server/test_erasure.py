"""Erasing a job over HTTP: a scope of its own, and nothing of it in the audit log."""

from lamplighter.server.auth import Principal, Scope

CANARY = "canary-51b2"


async def ended(scene, tenant: str = "acme") -> str:
    body = {"type": "charge", "arguments": {"order_id": CANARY}, "tenant": tenant}
    job_id = (await scene.call("POST", "/v1/jobs", send=body)).json["id"]
    await scene.call("DELETE", f"/v1/jobs/{job_id}")
    return job_id


async def test_a_job_that_has_ended_is_erased_and_that_is_noted_without_its_content(scene):
    job_id = await ended(scene)
    response = await scene.call("POST", f"/v1/jobs/{job_id}/erase?reason=asked")
    assert (response.status, response.json) == (200, {"id": job_id})
    assert (await scene.call("GET", f"/v1/jobs/{job_id}")).code == "unknown-job"
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/erase")).status == 404
    entries = (await scene.call("GET", "/v1/audit")).json["entries"]
    noted = [one for one in entries if one["action"] == "job.erase"]
    assert [(one["object"], one["reason"]) for one in noted] == [(job_id, "asked")]
    assert CANARY not in str(entries)


async def test_a_job_that_has_not_ended_is_not_erased(scene):
    body = {"type": "charge", "arguments": {"order_id": "o"}}
    job_id = (await scene.call("POST", "/v1/jobs", send=body)).json["id"]
    response = await scene.call("POST", f"/v1/jobs/{job_id}/erase")
    assert (response.status, response.code) == (409, "wrong-state")
    assert "cancel it first" in response.json["hint"]
    assert (await scene.call("GET", f"/v1/jobs/{job_id}")).status == 200


async def test_only_who_has_the_scope_erases_and_only_in_its_tenant(scene):
    job_id = await ended(scene)
    others = frozenset(Scope) - {Scope.JOBS_ERASE, Scope.ADMIN}
    scene.become(Principal(name="a", scopes=others))
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/erase")).code == "forbidden"
    scene.become(Principal(name="b", tenant="other"))
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/erase")).code == "unknown-job"
    scene.become(Principal(name="c", tenant="acme", scopes=frozenset({Scope.JOBS_ERASE})))
    assert (await scene.call("POST", f"/v1/jobs/{job_id}/erase")).status == 200
