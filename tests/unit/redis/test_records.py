"""Values: what Python packs, Lua reads, and the other way round."""

import json
import struct

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamplighter.engines.redis import records
from lamplighter.engines.redis.scripts import _read, laid_out
from lamplighter.model.job import (
    NO_EXTRAS,
    Delivery,
    ErrorInfo,
    Extras,
    JobState,
    Level,
    NewJob,
)
from lamplighter.model.retry import Retry
from lamplighter.port import texts

LIBRARY = _read("lib/record.lua") + "\n"
# Builds a job as submit does, changes all that can change, packs it, reads and packs it again.
WHOLE = laid_out(
    LIBRARY
    + """
local flags, lane, seq, due, created, body = unpack(ARGV, 1, 6)
local fresh = struct.pack(JOB_HEAD, 'W', tonumber(flags), tonumber(lane), tonumber(seq),
  tonumber(due), tonumber(created)) .. body
local job = unpack_job(fresh)
assert(pack_job(job) == fresh)
local given = cjson.decode(ARGV[7])
for name, value in pairs(given) do
  job[name] = value
end
job.result = given.has_result and ARGV[8] or nil
job.error = ARGV[9]
local changed = pack_job(job)
assert(pack_job(unpack_job(changed)) == changed)
assert(job_state(changed) == job.state and job_lane(changed) == job.lane)
assert(job_seq(changed) == job.seq and job_due(changed) == job.due)
assert(job_created(changed) == job.created and job_attempt(changed) == job.attempt)
assert(job_args_size(changed) == #job.args and job_cost(changed) == job.cost)
assert(job_lease(changed) == job.lease and job_nonce(changed) == job.nonce)
assert(job_finished(changed) == job.finished and job_claimed(changed) == job.claimed)
assert(job_tenant(changed) == job.tenant)
local run = pack_run({ lease = job.lease + 1, claimed = 99, handout = 7, nonce = job.nonce,
  lease_ms = 30000, started = 0, worker = job.worker })
local claim = unpack_run(run)
assert(claim.lease == job.lease + 1 and claim.nonce == job.nonce and claim.lease_ms == 30000)
assert(claim.claimed == 99 and claim.handout == 7 and claim.worker == job.worker)
assert(run_lease_ms(run) == 30000 and run_started(run) == 0)
local finished = struct.pack('<I8', 4321)
return { fresh, changed, run, succeeded(changed, run, finished, job.result, job.note) }
"""
)

LANE = b"mail\x002\x00send \xc3\xa9\x00gpu\x0017"
ID = "01M7GGD4ED000S2HVKAAH9H50Y"
number = st.integers(0, 2**32 - 1)
instant = st.integers(0, 2**53)
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
marks = st.none() | text
extras = st.just(NO_EXTRAS) | st.builds(
    Extras,
    retry=st.none() | st.just(Retry(max_attempts=7)),
    timeout=st.none() | st.integers(1, 99),
    tags=st.lists(text, max_size=3).map(tuple),
    metadata=st.dictionaries(text, st.integers(), max_size=2),
)
new_jobs = st.builds(
    NewJob,
    id=st.just(ID),
    type=st.just("send é"),
    args=st.binary(max_size=200),
    queue=st.just("mail"),
    level=st.just(Level.NORMAL),
    tenant=text.filter(bool),
    delivery=st.sampled_from(Delivery),
    extras=extras,
    cost=st.integers(1, 2**32 - 1),
    schedule=marks,
    held=st.booleans(),
    requirement=st.just("gpu"),
)
stories = st.fixed_dictionaries(
    {
        "state": st.sampled_from("WBSDCE"),
        "attempt": number,
        "crashes": number,
        "losses": number,
        "generation": number,
        "lease": st.integers(0, 2**32 - 2),
        "finished": instant,
        "claimed": instant,
        "handout": instant,
        "nonce": st.text("0123456789abcdef", min_size=16, max_size=16),
        "worker": text,
        "suspect": st.booleans(),
        "has_result": st.booleans(),
    },
    optional={"reason": text, "note": text},
)


def given_all(test):
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    bounded = settings(max_examples=150, deadline=None, suppress_health_check=slow)
    return bounded(
        given(
            job=new_jobs,
            story=stories,
            result=st.binary(max_size=60),
            message=text,
            place=st.tuples(number, instant, instant, instant),
        )(test)
    )


@given_all
def test_whatever_a_job_holds_python_and_lua_read_the_same(
    admin: redis.Redis, *, job, story, result, message, place
):
    lane, seq, due, created = place
    error = ErrorInfo(type="Boom", message=message, kinds=("Boom", "Exception"))
    fresh, changed, run, done = admin.eval(
        WHOLE,
        0,
        records.flags_of(job),
        lane,
        seq,
        due,
        created,
        records.body_of(job),
        json.dumps(story),
        result,
        texts.error_to_text(error),
    )

    read = records.job_of(ID, fresh, records.lane_of(LANE))
    assert (read.id, read.type, read.queue, read.level) == (ID, "send é", "mail", Level.NORMAL)
    assert (read.args, read.tenant, read.cost) == (job.args, job.tenant, job.cost)
    assert (read.due_at_ms, read.created_at_ms) == (due, created)
    assert (read.delivery, read.schedule) == (job.delivery, job.schedule)
    assert read.extras == texts.extras_of(texts.extras_to_text(job.extras))
    assert (read.attempt, read.crashes, read.losses, read.suspect, read.generation) == (
        *(0, 0, 0),
        False,
        0,
    )

    record = records.record_of(ID, changed, records.lane_of(LANE), now=due)
    again = record.job
    assert (again.attempt, again.crashes, again.losses) == (
        story["attempt"],
        story["crashes"],
        story["losses"],
    )
    assert (again.suspect, again.generation) == (story["suspect"], story["generation"])
    assert (again.args, again.tenant, again.schedule) == (job.args, job.tenant, job.schedule)
    assert record.state.value[0].upper() == story["state"]
    assert (record.lease, record.nonce) == (story["lease"], story["nonce"])
    assert (record.worker or "", record.handout or 0) == (story["worker"], story["handout"])
    assert (record.finished_at_ms or 0, record.claimed_at_ms or 0) == (
        story["finished"],
        story["claimed"],
    )
    assert (record.reason, record.result_note) == (story.get("reason"), story.get("note"))
    assert record.result == (result if story["has_result"] else None)
    assert record.error == error

    claim = records.claim_of(ID, changed, records.lane_of(LANE), run)
    assert (claim.fence.lease, claim.fence.nonce) == (story["lease"] + 1, story["nonce"])
    assert (claim.worker, claim.handout, claim.job) == (story["worker"], 7, again)
    running = records.record_of(ID, changed, records.lane_of(LANE), now=0, run=run, expires=5)
    assert (running.state, running.expires_at_ms) == (JobState.RUNNING, 5)
    assert (running.lease, running.claimed_at_ms) == (story["lease"] + 1, 99)

    ended = records.record_of(ID, done, records.lane_of(LANE), now=0)
    assert (ended.state, ended.finished_at_ms) == (JobState.SUCCEEDED, 4321)
    assert ended.job == again
    assert (ended.lease, ended.nonce, ended.handout) == (story["lease"] + 1, story["nonce"], 7)
    assert (ended.error, ended.reason) == (None, None)
    assert (ended.result, ended.result_note) == (record.result, record.result_note)
    assert (ended.worker or "", ended.claimed_at_ms) == (story["worker"], 99)


def test_a_job_that_was_never_claimed_has_no_claim(admin: redis.Redis):
    job = NewJob(id=ID, type="send é", args=b"{}", queue="mail")
    value = struct.pack("<cBIQQQ", b"W", 0, 1, 1, 10, 5) + records.body_of(job)

    record = records.record_of(ID, value, records.lane_of(LANE), now=10)

    assert (record.state, record.lease) == (JobState.WAITING, 0)
    assert (record.nonce, record.worker, record.handout) == (None, None, None)
    assert (record.claimed_at_ms, record.expires_at_ms, record.finished_at_ms) == (None,) * 3
    assert (record.hold, record.cancel, record.error, record.progress) == (None,) * 4


def test_marks_get_their_time_from_the_script(admin: redis.Redis):
    script = _read("lib/mark.lua") + "\nreturn mark_at(ARGV[1], tonumber(ARGV[2]))"
    written = admin.eval(script, 0, records.mark_to_text('"é', "why\ud800"), 1_700_000_000_123)

    mark = texts.mark_of(written.decode())

    assert mark is not None
    assert (mark.by, mark.reason, mark.at_ms) == ('"é', "why?", 1_700_000_000_123)


def test_an_attempt_is_read_as_it_was_written(admin: redis.Redis):
    script = laid_out(LIBRARY) + (
        "return pack_attempt({ generation = 3, lease = 4, number = 2, claimed = 1700000000000,"
        " finished = 1700000000009, nonce = ARGV[1], worker = ARGV[2], outcome = 'failed',"
        " error = ARGV[3] })"
    )
    error = ErrorInfo(type="Boom", message="é")

    value = admin.eval(script, 0, "0123456789abcdef", "host-ü", texts.error_to_text(error))
    found = records.attempt_of(ID, value)

    assert (found.job_id, found.generation, found.lease, found.number) == (ID, 3, 4, 2)
    assert (found.worker, found.outcome, found.error) == ("host-ü", "failed", error)
    assert (found.started_at_ms, found.finished_at_ms) == (1700000000000, 1700000000009)
    assert found.nonce == "0123456789abcdef"


def test_a_lane_is_named_as_the_store_reads_it():
    job = NewJob(id=ID, type="send é", args=b"", queue="mail", requirement="gpu")

    assert records.lane_text(job) + b"\x0017" == LANE
    assert records.lane_of(LANE) == ("mail", Level.NORMAL, "send é", "gpu")
