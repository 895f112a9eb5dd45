"""Random verbs against an engine and against the reference; after every step both must agree.

Any engine can use it: ``run_state_machine(make)``, where ``make(clock_ms)`` gives an engine, not
yet opened, on a store of its own. ``LAMPLIGHTER_EXAMPLES`` sets how many sequences are tried.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lamplighter.model.filters import Filter
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Settlement, settle
from lamplighter.model.outcome import Abandoned
from lamplighter.model.retry import Retry
from lamplighter.port.conformance import builders
from lamplighter.port.conformance import strategies as given
from lamplighter.port.conformance.builders import is_poll, part_of
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.reference import ReferenceStore
from lamplighter.port.values import ClaimRequest, QueueSettings, Recording, Renewal, Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from lamplighter.model.job import Claim, JobRecord, NewJob
    from lamplighter.model.journal import Journal
    from lamplighter.port.conformance.reference_row import Row
    from lamplighter.port.store import Engine
    from lamplighter.port.values import Changed

EXAMPLES = int(os.environ.get("LAMPLIGHTER_EXAMPLES", "60"))
PARTS = 4
"""The sequences are spread over as many tests, so that they run side by side."""
STEPS = 30
RETRY = Retry(max_attempts=3, delays=[0, 4])
BY = {"by": "machine", "reason": "at random"}
T = TypeVar("T")
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    # One failure at a time, made short but not explained: that would take minutes.
    "report_multiple_bugs": False,
    "phases": [phase for phase in Phase if phase is not Phase.explain],
}


def run_state_machine(
    make: Callable[[Callable[[], int]], Engine], examples: int, *, spread: bool = False
) -> None:
    """Try random sequences of verbs on engines that ``make`` gives."""

    class Bound(StoreMachine):
        def __init__(self) -> None:
            super().__init__(make, spread=spread)

    run_state_machine_as_test(
        Bound,
        settings=settings(max_examples=examples, stateful_step_count=STEPS, **SETTINGS),
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_any_sequence_of_verbs_agrees_with_the_reference(
    fresh_engine: Callable[[Callable[[], int]], Engine], part: int
) -> None:
    run_state_machine(fresh_engine, EXAMPLES // PARTS + (part < EXAMPLES % PARTS))


@pytest.mark.timeout(900)
def test_any_sequence_of_verbs_on_jobs_in_all_shards_agrees_with_the_reference(
    fresh_engine: Callable[[Callable[[], int]], Engine],
) -> None:
    run_state_machine(fresh_engine, max(1, EXAMPLES // PARTS), spread=True)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_any_order_of_hand_outs_agrees_with_the_reference(
    fresh_engine: Callable[[Callable[[], int]], Engine], part: int
) -> None:
    # The machine above spreads over all verbs; this one claims most of the time.
    @settings(max_examples=EXAMPLES // PARTS + (part < EXAMPLES % PARTS), **SETTINGS)
    @hypothesis.given(st.lists(given.plain_jobs, min_size=10, max_size=40), given.plans)
    def follow(backlog: list[given.JobSpec], plan: list[given.Step]) -> None:
        machine = StoreMachine(fresh_engine)
        try:
            machine.begin(backlog, 1_000)
            for verb, facts in plan:
                getattr(machine, verb)(**facts)
            machine.every_job_is_as_the_reference_says()
        finally:
            machine.teardown()

    follow()


class StoreMachine(RuleBasedStateMachine):
    """One store, one reference, one clock.

    ``spread``: one job after the other is in another shard. Otherwise only those with keys are.
    """

    def __init__(
        self, make: Callable[[Callable[[], int]], Engine], *, spread: bool = False
    ) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.runner = asyncio.Runner()
        self.engine = make(self.clock.now_ms)
        self.run(self.engine.open())
        self.shards = self.engine.capabilities.shards
        self.reference = ReferenceStore(self.clock.now_ms, self.shards)
        self.spread = spread
        self.submitted: list[NewJob] = []
        self.claims: list[Claim] = []
        self.requests: list[ClaimRequest] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()

    # ── submit and claim ─────────────────────────────────────────────────────────────────────

    @initialize(specs=st.lists(given.plain_jobs, min_size=10, max_size=40), wait=given.max_wait_ms)
    def begin(self, specs: list[given.JobSpec], wait: int | None) -> None:
        # Fairness shows only where several tenants have something to hand out.
        self.submit(specs)
        self.put(("queue", given.QUEUES[0], QueueSettings(max_wait_ms=wait)))

    @rule(specs=st.lists(given.jobs, min_size=1, max_size=5))
    def submit(self, specs: list[given.JobSpec]) -> None:
        jobs = [
            spec.job(number, self.clock.now_ms(), builders.home + number * self.spread)
            for number, spec in enumerate(specs, len(self.submitted))
        ]
        self.submitted += jobs
        self._submit(jobs)

    @rule(picks=given.picks)
    def submit_again(self, picks: list[int]) -> None:
        self._submit(_some(picks, self.submitted))

    def _submit(self, jobs: list[NewJob]) -> None:
        jobs = [job for job in jobs if not self._is_ambiguous(job)]
        assert self.run(self.engine.jobs.submit(jobs)) == self.reference.submit(jobs)

    def _is_ambiguous(self, job: NewJob) -> bool:
        # A key whose job is gone, used with another body, may be called gone or a conflict.
        if job.key is None:
            return False
        known = self.reference.keys.get((job.tenant, job.key.scope, job.key.key))
        if known is None or known.body == job.key.body:
            return False
        return known.job_id not in self.reference.rows

    @rule(spec=given.requests)
    def claim(self, spec: given.RequestSpec) -> None:
        self.requests.append(spec.request(len(self.requests)))
        self._claim(self.requests[-1])

    @rule(spec=given.plain_requests)
    def claim_from_both_queues(self, spec: given.RequestSpec) -> None:
        self.claim(spec)

    def _claim(self, request: ClaimRequest) -> None:
        answer = self.run(self.engine.jobs.claim(request))
        order = list(dict.fromkeys(part_of(self.engine, one.job.id) for one in answer.claims))
        expected = self.reference.claim(request, order)
        assert self._by_queue(answer.claims) == self._by_queue(expected.claims)
        assert is_poll(self.engine, request, answer, expected.poll_after_ms)
        self.claims += [one for one in answer.claims if one not in self.claims]

    @precondition(lambda self: self.requests)
    @rule(picks=given.picks)
    def claim_again(self, picks: list[int]) -> None:
        for request in _some(picks, self.requests):
            if self.reference.remembers(request.nonce):
                self._claim(request)

    # ── renew, settle, rescue ────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.claims)
    @rule(picks=given.picks, lease_ms=given.lease_ms)
    def renew(self, picks: list[int], lease_ms: int) -> None:
        leases = [Renewal(one.job.id, one.fence) for one in _some(picks, self.claims)]
        answer = self.run(self.engine.jobs.renew(leases, lease_ms))
        assert answer == self.reference.renew(leases, lease_ms)

    @rule(ends=st.lists(given.ends, min_size=1, max_size=6), stale=given.stale)
    def settle(self, ends: list[given.End], *, stale: bool) -> None:
        if not (choice := self._choice(stale=stale)):
            return
        settlements: list[Settlement] = []
        for pick, outcome, journal in ends:
            (claim,) = _some([pick], choice)
            settlements.append(replace(settle(claim, outcome, retry=RETRY), journal=journal))
        self._settle(settlements)

    @rule(
        said=st.lists(st.tuples(given.pick, given.journals, st.booleans()), min_size=1, max_size=6),
        stale=given.stale,
    )
    def record(self, said: list[tuple[int, Journal, bool]], *, stale: bool) -> None:
        if not (choice := self._choice(stale=stale)):
            return
        recordings: list[Recording] = []
        for pick, journal, started in said:
            (claim,) = _some([pick], choice)
            recordings.append(Recording(claim.job.id, claim.fence, journal, started))
        answer = self.run(self.engine.jobs.record(recordings))
        assert answer == self.reference.record(recordings)

    def _choice(self, *, stale: bool) -> list[Claim]:
        """Mostly what still runs; sometimes any claim ever made, whose fence may be an old one."""
        return self.claims if stale else (self._running() or self.claims)

    @rule(limit=st.integers(1, 5), picks=given.picks)
    def rescue(self, limit: int, picks: list[int]) -> None:
        answer, expected = self.run(self.engine.jobs.rescue(limit)), self.reference.rescue(limit)
        # Equally overdue claims may come in any order, and the limit may cut among them.
        assert [one.overdue_ms for one in answer] == [one.overdue_ms for one in expected]
        running = {row.new.id: row.held() for row in self.reference.rows.values()}
        assert all(running[one.claim.job.id] == one.claim for one in answer)
        # Some that have not ended are among them: a rescuer may be late.
        late = _some(picks, self.claims) if self.claims else []
        claims = [one.claim for one in answer] + late
        self._settle([settle(one, Abandoned(), only_if_expired=True) for one in claims])

    def _settle(self, settlements: list[Settlement]) -> None:
        answer = self.run(self.engine.jobs.settle(settlements))
        assert answer == self.reference.settle(settlements)

    def _running(self) -> list[Claim]:
        rows = self.reference.rows.values()
        return [row.claim() for row in rows if row.state is JobState.RUNNING]

    # ── operators' verbs ─────────────────────────────────────────────────────────────────────

    @rule(verb=given.verbs, picks=given.picks, running=st.booleans())
    def change(self, verb: str, picks: list[int], *, running: bool) -> None:
        ids = [job.id for job in _some(picks, self.submitted)]
        if running and (claims := self._running()):
            ids = [one.job.id for one in _some(picks, claims)]
        work: Coroutine[Any, Any, list[Changed]] = getattr(self.engine.jobs, verb)(ids, **BY)
        assert self.run(work) == getattr(self.reference, verb)(ids, **BY)

    @rule(retention=given.retentions)
    def prune(self, retention: Retention) -> None:
        jobs = keys = 0
        while True:
            pruned = self.run(self.engine.jobs.prune(retention, 100))
            jobs, keys = jobs + pruned.jobs, keys + pruned.keys
            if not (pruned.jobs or pruned.keys or pruned.more):
                break
        expected = self.reference.prune(retention)
        assert (jobs, keys) == (expected.jobs, expected.keys)

    # ── settings and time ────────────────────────────────────────────────────────────────────

    @rule(setting=given.settings)
    def put(self, setting: given.Setting) -> None:
        what, name, change = setting
        self.run(getattr(self.engine.settings, f"put_{what}")(name, change, **BY))
        getattr(self.reference, f"put_{what}")(name, change, **BY)

    @rule(ms=given.passing_ms)
    def time_passes(self, ms: int) -> None:
        # Who wakes although the clock then goes back depends on which shards a full claim has
        # looked at, and that is nobody's business.
        if ms > 0 or self.shards == 1:
            self.clock.advance(ms=ms)

    # ── both agree ───────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_job_is_as_the_reference_says(self) -> None:
        now = self.clock.now_ms()
        found = {record.job.id: record for record in self.run(self._every_record())}
        assert set(found) == set(self.reference.rows)
        for job_id, row in self.reference.rows.items():
            assert seen(found[job_id]) == expected_of(row, now), job_id

    @rule()
    def look_at_workers_and_queues(self) -> None:
        held = self.run(self.engine.jobs.claims_of(given.WORKER))
        running = [r.held() for r in self.reference.rows.values() if r.state is JobState.RUNNING]
        assert self._by_queue(held) == self._by_queue(running)
        queues = self.run(self.engine.inspector.queues())
        handouts = {queue.name: queue.handouts for queue in queues if queue.handouts}
        assert handouts == self.reference.handouts

    @rule()
    def look_at_attempts_and_logs(self) -> None:
        for job_id, row in self.reference.rows.items():
            attempts = self.run(self.engine.inspector.attempts(job_id))
            assert attempts == row.story.attempts, job_id
            logs = self.run(self.engine.inspector.logs(job_id, tenant=row.new.tenant))
            assert logs == row.story.logs(), job_id

    def _by_queue(self, claims: list[Claim]) -> dict[tuple[int, str], list[Claim]]:
        """Claims per shard and queue in the order of their hand-outs; these share no order."""
        queues: dict[tuple[int, str], list[Claim]] = {}
        for one in sorted(claims, key=lambda one: one.handout):
            queues.setdefault((part_of(self.engine, one.job.id), one.job.queue), []).append(one)
        return queues

    async def _every_record(self) -> list[JobRecord]:
        records: list[JobRecord] = []
        cursor: str | None = None
        while True:
            page = await self.engine.inspector.jobs(Filter(), limit=100, cursor=cursor)
            records += page.jobs
            if (cursor := page.cursor) is None:
                return records


def _some(picks: list[int], things: list[T]) -> list[T]:
    # From the end: what happened last is most likely still to matter.
    return [things[-1 - pick % len(things)] for pick in picks]


def seen(record: JobRecord) -> dict[str, object]:
    """What of a record must agree, by its state."""
    job = record.job
    facts: dict[str, object] = {
        "state": record.state,
        "status": record.status,
        "counters": (job.attempt, job.crashes, job.losses, job.suspect, job.generation),
        "lease": record.lease,
        "created": job.created_at_ms,
        "outcome": (record.result, record.error, record.reason),
        "progress": record.progress,
    }
    if record.state is JobState.CANCELLED:
        # Who cancelled a waiting job and why may stand in the reason or in the mark.
        facts["outcome"] = (record.result, record.error)
    if record.state in {JobState.WAITING, JobState.RUNNING}:
        facts |= {"due": job.due_at_ms, "held": record.hold is not None}
        facts |= {"cancelling": record.cancel is not None, "finished": record.finished_at_ms}
    if record.state is JobState.RUNNING:
        facts |= {"nonce": record.nonce, "worker": record.worker, "handout": record.handout}
        facts |= {"claimed": record.claimed_at_ms, "expires": record.expires_at_ms}
    else:
        facts["expires"] = record.expires_at_ms
    if record.state not in {JobState.WAITING, JobState.RUNNING}:
        facts["finished"] = record.finished_at_ms
    return facts


def expected_of(row: Row, now: int) -> dict[str, object]:
    """The same facts of the reference."""
    facts: dict[str, object] = {
        "state": row.state,
        "status": row.status(now),
        "counters": (row.attempt, row.crashes, row.losses, row.suspect, row.generation),
        "lease": row.fence.lease,
        "created": row.created_at_ms,
        "outcome": (row.result, row.error, row.reason),
        "progress": row.story.progress,
    }
    if row.state is JobState.CANCELLED:
        facts["outcome"] = (row.result, row.error)
    if row.state in {JobState.WAITING, JobState.RUNNING}:
        facts |= {"due": row.due_at_ms, "held": row.hold is not None}
        facts |= {"cancelling": row.cancel is not None, "finished": None}
    if row.state is JobState.RUNNING:
        facts |= {"nonce": row.fence.nonce, "worker": row.worker, "handout": row.handout}
        facts |= {"claimed": row.claimed_at_ms, "expires": row.expires_at_ms}
    else:
        facts["expires"] = None
    if row.state not in {JobState.WAITING, JobState.RUNNING}:
        facts["finished"] = row.finished_at_ms
    return facts
