"""Fair use: lists carry nothing large, and who does not say who they are costs little."""

import gzip
import json

import pytest

from lamplighter.model.job import ErrorInfo
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Rejected
from lamplighter.model.retry import Retry
from tests.unit.server.test_tokens import issue

LARGE = "x" * 60_000


async def test_a_list_of_jobs_leaves_out_what_is_large_and_says_so(scene):
    large = await scene.submit()
    await scene.succeed(await scene.claim(), json.dumps(LARGE).encode())
    small = await scene.submit()
    await scene.succeed(await scene.claim(), b'{"paid": true}')
    answer = await scene.call("GET", "/v1/jobs")
    found = {job["id"]: job for job in answer.json["jobs"]}
    assert (found[large]["result"], found[large]["omitted"]) == (None, ["result"])
    assert (found[small]["result"], found[small]["omitted"]) == ({"paid": True}, [])
    assert len(answer.body) < 5_000
    one = (await scene.call("GET", f"/v1/jobs/{large}")).json
    assert (one["result"], one["omitted"]) == (LARGE, [])


async def test_a_list_of_jobs_cuts_long_errors(scene):
    job_id = await scene.submit()
    error = ErrorInfo(type="E", message="y" * 4_000, traceback="", fingerprint="f")
    change = settle(await scene.claim(), Failed(error), retry=Retry(max_attempts=1))
    await (await scene.engine()).jobs.settle([change])
    (job,) = (await scene.call("GET", "/v1/jobs")).json["jobs"]
    assert job["omitted"] == ["error"]
    assert len(job["error"]["message"]) == 1_024
    whole = (await scene.call("GET", f"/v1/jobs/{job_id}")).json
    assert whole["error"]["message"] == "y" * 4_000
    (group,) = (await scene.call("GET", "/v1/dlq")).json["groups"]
    assert len(group["error"]["message"]) == 1_024


async def test_a_list_of_jobs_cuts_long_reasons(scene):
    job_id = await scene.submit()
    await (await scene.engine()).jobs.settle([settle(await scene.claim(), Rejected("z" * 4_000))])
    (job,) = (await scene.call("GET", "/v1/jobs")).json["jobs"]
    assert (len(job["reason"]), job["omitted"]) == (1_024, ["reason"])
    whole = (await scene.call("GET", f"/v1/jobs/{job_id}")).json
    assert (whole["reason"], whole["omitted"]) == (f"rejected: {'z' * 4_000}", [])


async def test_a_long_list_of_jobs_is_whole_though_it_is_read_in_steps(scene):
    ids = [await scene.submit() for _ in range(120)]
    answer = (await scene.call("GET", "/v1/jobs?limit=110")).json
    assert [job["id"] for job in answer["jobs"]] == ids[:-111:-1]
    rest = (await scene.call("GET", f"/v1/jobs?limit=110&cursor={answer['next']}")).json
    assert [job["id"] for job in rest["jobs"]] == ids[9::-1]


async def test_a_list_of_schedules_leaves_out_what_is_large_and_says_so(scene):
    await scene.put("large", arguments={"order_id": LARGE}, metadata={"a": "b" * 2_000})
    await scene.put("small")
    answer = await scene.call("GET", "/v1/schedules")
    large, small = (each["spec"] for each in answer.json["schedules"])
    assert (large["arguments"], large["metadata"]) == (None, {})
    assert large["omitted"] == ["arguments", "metadata"]
    assert (small["arguments"], small["omitted"]) == ({"order_id": "o-1"}, [])
    assert len(answer.body) < 5_000
    one = (await scene.call("GET", "/v1/schedules/large")).json["spec"]
    assert (one["arguments"]["order_id"], one["omitted"]) == (LARGE, [])


async def test_the_description_is_written_once_packed_and_not_sent_again(scene):
    plain = await scene.call("GET", "/v1/openapi.json")
    packed = await scene.call("GET", "/v1/openapi.json", headers={"accept-encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    assert scene.service.document.content is scene.service.document.content
    again = await scene.call(
        "GET", "/v1/openapi.json", headers={"if-none-match": plain.headers["etag"]}
    )
    assert (again.status, again.body) == (304, b"")
    refused = {"accept-encoding": "gzip;q=0, identity"}
    assert (await scene.call("GET", "/v1/openapi.json", headers=refused)).body == plain.body


@pytest.fixture
async def locked(make, clock):
    made = make(tokens=True, http_anonymous_rate=1.0, http_anonymous_burst=3)
    await made.publish("charge")
    return made


@pytest.mark.parametrize("path", ["/v1/openapi.json", "/", "/v1/reference", "/v1/jobs"])
async def test_who_does_not_say_who_they_are_is_limited_by_address(locked, clock, path):
    usual = (await locked.call("GET", path)).status
    assert usual in {200, 401, 404}
    for _ in range(2):
        assert (await locked.call("GET", path)).status == usual
    refused = await locked.call("GET", path)
    assert (refused.status, refused.code) == (429, "rate-limited")
    assert refused.headers["retry-after"] == "1"
    clock.later += 1
    assert (await locked.call("GET", path)).status == usual


async def test_wrong_tokens_are_limited_and_good_ones_are_not(locked):
    token = await issue(locked, "jobs:read")
    wrong = {"Authorization": f"Bearer ll_{7:012x}_{8:064x}"}
    answers = [(await locked.call("GET", "/v1/jobs", headers=wrong)).status for _ in range(6)]
    assert answers == [401, 401, 401, 429, 429, 429]
    good = {"Authorization": f"Bearer {token}"}
    assert (await locked.call("GET", "/v1/jobs", headers=good)).status == 200


async def test_logins_are_limited(locked):
    tries = [
        (await locked.call("POST", "/v1/session", send={"token": "x"})).status for _ in range(4)
    ]
    assert tries == [401, 401, 401, 429]


async def test_whoever_watches_over_the_service_is_not_limited(locked):
    for _ in range(20):
        assert (await locked.call("GET", "/healthz")).status == 200
        assert (await locked.call("GET", "/readyz")).status == 200
