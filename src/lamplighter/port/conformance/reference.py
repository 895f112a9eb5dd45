"""The pure model of a store: the write verbs in plain dicts, naive on purpose.

Nothing here is quick: every hand-out looks at every job. It follows the docstrings of
`port/store.py` and the order of `model/stride.py`, and engines are compared with it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lamplighter.model.ids import shard_of
from lamplighter.model.job import TERMINAL, Fence, JobState, Mark
from lamplighter.port.conformance.reference_line import Lines
from lamplighter.port.conformance.reference_row import Key, Row
from lamplighter.port.values import (
    RETENTION_FLOOR_MS,
    ChangeAnswer,
    Changed,
    Claimed,
    Expired,
    Pruned,
    Recorded,
    RenewAnswer,
    Renewed,
    SettleAnswer,
    Settled,
    SubmitAnswer,
    Submitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamplighter.model.job import IdempotencyKey, NewJob
    from lamplighter.model.lifecycle import Next, Settlement
    from lamplighter.port.values import (
        ClaimRequest,
        QueueSettings,
        Recording,
        Renewal,
        Retention,
        TenantSettings,
        TypeSettings,
    )

FINISHED = TERMINAL - {JobState.DEAD}
DONE, ALREADY, CONFLICT = ChangeAnswer.DONE, ChangeAnswer.ALREADY, ChangeAnswer.CONFLICT
REQUEST_MS = 3_600_000
"""How long a claim is recognised at least."""


class ReferenceStore:
    """All write verbs, as plain functions on dicts.

    In a store of several shards, each has an order and hand-out numbers of its own.
    """

    def __init__(self, clock_ms: Callable[[], int], shards: int = 1) -> None:
        self._now = clock_ms
        self._shards = shards
        self._sequence = 0
        self.rows: dict[str, Row] = {}
        self.keys: dict[tuple[str, str, str], Key] = {}
        self.requests: dict[str, int] = {}
        """Nonces under which something was handed out, and when."""
        self._lines = [Lines() for _ in range(shards)]

    @property
    def handouts(self) -> Counter[str]:
        """How many jobs each queue has handed out."""
        return sum((Counter(lines.handouts) for lines in self._lines), Counter[str]())

    # ── submit ───────────────────────────────────────────────────────────────────────────────

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store what is new."""
        return [self._submit_one(job) for job in jobs]

    def _submit_one(self, job: NewJob) -> Submitted:
        if job.id in self.rows:
            return Submitted(job.id, SubmitAnswer.ALREADY)
        if job.key is not None:
            known = self.keys.get(_name(job, job.key))
            if known is not None:
                return Submitted(known.job_id, self._answer_for(known, job.key))
            self.keys[_name(job, job.key)] = Key(job.key.body, job.id, self._now())
        now = self._now()
        wanted = now + job.delay_ms if job.run_at_ms is None else job.run_at_ms
        self._sequence += 1
        row = Row(job, self._sequence, now, max(now, wanted))
        row.hold = Mark(by="", reason="", at_ms=now) if job.held else None
        self.rows[job.id] = row
        self._came(row)
        return Submitted(job.id, SubmitAnswer.CREATED)

    def _answer_for(self, known: Key, key: IdempotencyKey) -> SubmitAnswer:
        if known.body != key.body:
            return SubmitAnswer.CONFLICT
        return SubmitAnswer.ALREADY if known.job_id in self.rows else SubmitAnswer.GONE

    # ── claim ────────────────────────────────────────────────────────────────────────────────

    def claim(self, request: ClaimRequest, order: Sequence[int] = ()) -> Claimed:
        """Hand out one job after the other, looking at everything each time.

        ``order`` has the shards that the engine took from, which may choose whom it asks first;
        from the others it took nothing, so that they have nothing unless the claim was full.
        """
        if request.nonce in self.requests:
            return Claimed([row.claim() for row in self.running_under(request.nonce)], 0)
        taken: list[Row] = []
        for shard in dict.fromkeys((*order, *range(self._shards))):
            before = Counter(row.new.queue for row in taken)
            for with_quotas in (True, False):
                for queue, quota in request.queues:
                    if not _is_full(request, taken):
                        left = max(0, quota - before[queue]) if with_quotas else request.limit
                        self._hand_out(shard, request, queue, left, taken)
        if taken:
            self.requests[request.nonce] = self._now()
        return Claimed([row.claim() for row in taken], self._poll_after(request))

    def running_under(self, nonce: str) -> list[Row]:
        """The jobs that still run under a request."""
        return [
            row
            for row in self.rows.values()
            if row.state is JobState.RUNNING and row.fence.nonce == nonce
        ]

    def remembers(self, nonce: str) -> bool:
        """Whether it is certain what a repeated request gets: it is new, running, or young."""
        at_ms = self.requests.get(nonce)
        if at_ms is None or (self._shards == 1 and self.running_under(nonce)):
            return True
        # The clock may have gone back a little since it was forgotten.
        return self._now() - at_ms < REQUEST_MS - 60_000

    def _hand_out(
        self, shard: int, request: ClaimRequest, queue: str, quota: int, taken: list[Row]
    ) -> None:
        now, end = self._now(), len(taken) + quota
        lines, rows = self._lines[shard], self._rows_in(shard)
        lines.wake(queue, request, rows, now)
        while len(taken) < end and not _is_full(request, taken):
            found = lines.next(queue, request, rows, now)
            if found is None:
                break
            row, out_of_turn = found
            row.handout = lines.move_on(row, out_of_turn=out_of_turn)
            row.state = JobState.RUNNING
            row.fence = Fence(row.fence.lease + 1, request.nonce)
            row.worker, row.claimed_at_ms = request.worker, now
            row.lease_ms, row.expires_at_ms = request.lease_ms, now + request.lease_ms
            row.story.begin(row.claim(), now)
            self._went(row)
            taken.append(row)

    def _poll_after(self, request: ClaimRequest) -> int | None:
        queues = [queue for queue, _ in request.queues]
        dues = [
            row.due_at_ms
            for row in self.rows.values()
            if row.new.queue in queues
            and row.in_turn()
            and self._lines[0].is_asked(row.turn, request)
            and row.new.tenant not in self._lines[0].held_tenants
        ]
        return max(0, min(dues) - self._now()) if dues else None

    def _came(self, row: Row) -> None:
        """A job stands in its turn now; a turn whose new head is due wakes at once."""
        shard = self._shard_of(row)
        self._lines[shard].known.add(row.turn.lane)
        self._lines[shard].came(row, self._rows_in(shard), self._now())

    def _went(self, row: Row) -> None:
        """A job has left its turn; a turn without a due head falls asleep."""
        shard = self._shard_of(row)
        self._lines[shard].went(row.turn, self._rows_in(shard), self._now())

    def _shard_of(self, row: Row) -> int:
        return shard_of(row.new.id) % self._shards

    def _rows_in(self, shard: int) -> list[Row]:
        return [row for row in self.rows.values() if self._shard_of(row) == shard]

    # ── renew, settle, rescue ────────────────────────────────────────────────────────────────

    def renew(self, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
        """Extend what runs under its fence."""
        answers: list[Renewed] = []
        for lease in leases:
            row = self.rows.get(lease.id)
            if row is None or row.state is not JobState.RUNNING or row.fence != lease.fence:
                answers.append(Renewed(lease.id, RenewAnswer.LOST))
                continue
            row.lease_ms, row.expires_at_ms = lease_ms, self._now() + lease_ms
            cancel = row.cancel is not None
            answers.append(Renewed(lease.id, RenewAnswer.HELD, cancel))
        return answers

    def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Write what claims came to."""
        return [self._settle_one(settlement) for settlement in settlements]

    def _settle_one(self, settlement: Settlement) -> Settled:
        row = self.rows.get(settlement.id)
        if row is None:
            return Settled(settlement.id, SettleAnswer.LOST, None)
        if row.fence != settlement.fence:
            return Settled(settlement.id, SettleAnswer.LOST, row.state)
        if row.state is not JobState.RUNNING:
            return Settled(settlement.id, SettleAnswer.ALREADY, row.state)
        if settlement.only_if_expired and row.expires_at_ms > self._now():
            return Settled(settlement.id, SettleAnswer.RENEWED, row.state)
        if settlement.only_if_unstarted and row.started:
            return Settled(settlement.id, SettleAnswer.STARTED, row.state)
        chosen = settlement.next
        if row.cancel is not None and settlement.cancelled is not None:
            chosen = settlement.cancelled
        row.story.end(settlement, chosen, self._now())
        self._write(row, chosen)
        return Settled(settlement.id, SettleAnswer.DONE, row.state)

    def _write(self, row: Row, chosen: Next) -> None:
        now = self._now()
        row.state, row.cancel = chosen.state, None
        row.attempt, row.crashes, row.losses = chosen.attempt, chosen.crashes, chosen.losses
        row.suspect, row.reason, row.result = chosen.suspect, chosen.reason, chosen.result
        if chosen.state is JobState.WAITING:
            row.due_at_ms = now + chosen.delay_ms
            row.version = row.version if chosen.version is None else chosen.version
            # The last failure stays to be seen until there is a newer one or an end.
            row.error = chosen.error or row.error
            self._came(row)
        else:
            row.finished_at_ms = now
            row.error = chosen.error

    def record(self, recordings: Sequence[Recording]) -> list[Recorded]:
        """Keep what runs under its fence has to say."""
        answers: list[Recorded] = []
        for one in recordings:
            row = self.rows.get(one.id)
            if row is None or row.state is not JobState.RUNNING or row.fence != one.fence:
                answers.append(Recorded(one.id, held=False))
                continue
            row.story.keep(one.fence.lease, one.journal)
            if one.started:
                row.marked = one.fence.lease
            answers.append(Recorded(one.id, held=True))
        return answers

    def rescue(self, limit: int) -> list[Expired]:
        """Cut stretched leases, then read those that have ended."""
        now = self._now()
        running = [row for row in self.rows.values() if row.state is JobState.RUNNING]
        for row in running:
            row.expires_at_ms = min(row.expires_at_ms, now + row.lease_ms)
        ended = sorted(
            (row for row in running if row.expires_at_ms <= now), key=lambda r: r.expires_at_ms
        )
        return [Expired(row.held(), now - row.expires_at_ms) for row in ended[:limit]]

    # ── operators' verbs ─────────────────────────────────────────────────────────────────────

    def cancel(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Cancel what waits, ask what runs."""

        def decide(row: Row) -> ChangeAnswer:
            if row.state is JobState.CANCELLED or row.cancel is not None:
                return ALREADY
            if row.state in TERMINAL:
                return CONFLICT
            row.cancel = Mark(by=by, reason=reason, at_ms=self._now())
            if row.state is JobState.RUNNING:
                return ChangeAnswer.REQUESTED
            stood = row.in_turn()
            row.state, row.finished_at_ms = JobState.CANCELLED, self._now()
            if stood:
                self._went(row)
            return DONE

        return self._each(ids, decide)

    def hold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Take out of the turn."""

        def decide(row: Row) -> ChangeAnswer:
            if row.state in TERMINAL:
                return CONFLICT
            if row.hold is not None:
                return ALREADY
            stood = row.in_turn()
            row.hold = Mark(by=by, reason=reason, at_ms=self._now())
            if stood:
                self._went(row)
            return DONE

        return self._each(ids, decide)

    def unhold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Put back into the turn."""

        def decide(row: Row) -> ChangeAnswer:
            if row.state in TERMINAL:
                return CONFLICT
            if row.hold is None:
                return ALREADY
            row.hold = None
            self._came(row)
            return DONE

        return self._each(ids, decide)

    def retry(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Make due now; a dead job goes on."""

        def decide(row: Row) -> ChangeAnswer:
            if row.state is JobState.DEAD:
                return self._run_again(row, lives=0)
            if row.state is not JobState.WAITING:
                return CONFLICT
            if row.due_at_ms <= self._now():
                return ALREADY
            row.due_at_ms = self._now()
            self._came(row)
            return DONE

        return self._each(ids, decide)

    def replay(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Begin a new life."""

        def decide(row: Row) -> ChangeAnswer:
            return self._run_again(row, lives=1) if row.state in TERMINAL else CONFLICT

        return self._each(ids, decide)

    def _run_again(self, row: Row, *, lives: int) -> ChangeAnswer:
        row.state, row.due_at_ms, row.finished_at_ms = JobState.WAITING, self._now(), None
        row.generation += lives
        row.attempt = row.crashes = row.losses = 0
        row.suspect, row.version = False, ""
        row.hold = row.cancel = row.reason = row.result = row.error = None
        if lives:
            row.story.progress = None
        self._came(row)
        return DONE

    def purge(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Remove what has ended."""

        def decide(row: Row) -> ChangeAnswer:
            if row.state not in TERMINAL:
                return CONFLICT
            del self.rows[row.new.id]
            return DONE

        return self._each(ids, decide)

    def prune(self, retention: Retention) -> Pruned:
        """Remove all that is past its retention."""
        now = self._now()
        floor = now - RETENTION_FLOOR_MS
        by_age = now - retention.finished_ms
        finished = self._ended(FINISHED)
        surplus = len(finished) - retention.finished_count
        old = [
            job_id
            for place, (at_ms, job_id) in enumerate(finished)
            if at_ms < floor and (at_ms < by_age or place < surplus)
        ]
        by_age = now - retention.dead_ms
        dead = self._ended({JobState.DEAD})
        old += [job_id for at_ms, job_id in dead if at_ms < min(floor, by_age)]
        for job_id in old:
            del self.rows[job_id]
        keys = [
            name
            for name, key in self.keys.items()
            if key.job_id not in self.rows and key.created_at_ms < now - retention.key_ms
        ]
        for name in keys:
            del self.keys[name]
        return Pruned(jobs=len(old), keys=len(keys))

    def _ended(self, states: frozenset[JobState] | set[JobState]) -> list[tuple[int, str]]:
        return sorted(
            (row.finished_at_ms or 0, row.new.id)
            for row in self.rows.values()
            if row.state in states
        )

    def _each(self, ids: Sequence[str], decide: Callable[[Row], ChangeAnswer]) -> list[Changed]:
        answers: list[Changed] = []
        for job_id in ids:
            row = self.rows.get(job_id)
            if row is None:
                answers.append(Changed(job_id, ChangeAnswer.UNKNOWN, None))
                continue
            answer = decide(row)
            state = row.state if job_id in self.rows else None
            answers.append(Changed(job_id, answer, state))
        return answers

    # ── settings ─────────────────────────────────────────────────────────────────────────────

    def put_queue(self, name: str, settings: QueueSettings, *, by: str, reason: str) -> None:
        """Set a queue's hold or longest wait."""
        for lines in self._lines:
            if settings.max_wait_ms is not None:
                lines.max_wait_ms[name] = settings.max_wait_ms
            _set(lines.held_queues, name, settings.held)

    def put_type(self, name: str, settings: TypeSettings, *, by: str, reason: str) -> None:
        """Set a type's hold."""
        for lines in self._lines:
            _set(lines.held_types, name, settings.held)

    def put_tenant(self, name: str, settings: TenantSettings, *, by: str, reason: str) -> None:
        """Set a tenant's weight or hold."""
        for shard, lines in enumerate(self._lines):
            if settings.weight is not None:
                lines.weights[name] = settings.weight
            if settings.held is not None:
                rows = self._rows_in(shard)
                lines.hold_tenant(name, rows, self._now(), held=settings.held)


def _is_full(request: ClaimRequest, taken: list[Row]) -> bool:
    size = sum(len(row.new.args) for row in taken)
    return len(taken) >= request.limit or (bool(taken) and size >= request.max_bytes)


def _set(names: set[str], name: str, held: bool | None) -> None:  # noqa: FBT001 - None: as it is
    if held is not None:
        (names.add if held else names.discard)(name)


def _name(job: NewJob, key: IdempotencyKey) -> tuple[str, str, str]:
    return (job.tenant, key.scope, key.key)
