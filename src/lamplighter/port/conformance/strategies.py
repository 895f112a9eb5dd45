"""What the state machine draws: few names, so that things meet, and times that nearly collide."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from lamplighter.model.ids import compose
from lamplighter.model.job import Delivery, ErrorInfo, IdempotencyKey, Level, NewJob
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Failed,
    Held,
    Outcome,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.port.values import (
    RETENTION_FLOOR_MS,
    ClaimRequest,
    QueueSettings,
    Retention,
    TenantSettings,
    TypeSettings,
)

QUEUES = ("q1", "q2")
TYPES = ("mail", "scan")
TENANTS = ("Z", "a", "ä")
WORKER = "worker-1"

queue_names = st.sampled_from(QUEUES)
type_names = st.sampled_from(TYPES)
tenant_names = st.sampled_from(TENANTS)
pick = st.integers(0, 40)
picks = st.lists(pick, min_size=1, max_size=3)
lease_ms = st.sampled_from([1_000, 5_000, 30_000])
passing_ms = st.sampled_from([1, 999, 1_000, 5_000, 31_000, 61_000, 1_201_000])


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job without its number."""

    type: str
    queue: str
    tenant: str
    level: Level
    delay_ms: int
    ahead_ms: int | None
    held: bool
    cost: int
    requirement: str
    delivery: Delivery
    key: IdempotencyKey | None

    def job(self, number: int, now: int) -> NewJob:
        """Make the job with this number."""
        return NewJob(
            id=compose(1_700_000_000_000, 0, number),
            type=self.type,
            args=b'{"number": %d}' % number,
            queue=self.queue,
            level=self.level,
            tenant=self.tenant,
            delay_ms=self.delay_ms,
            run_at_ms=None if self.ahead_ms is None else now + self.ahead_ms,
            delivery=self.delivery,
            key=self.key,
            held=self.held,
            cost=self.cost,
            requirement=self.requirement,
        )


def _mostly(usual: object, *others: object) -> st.SearchStrategy[object]:
    return st.sampled_from([usual] * 5 + list(others))


jobs: st.SearchStrategy[JobSpec] = st.builds(
    JobSpec,
    type=type_names,
    queue=queue_names,
    tenant=tenant_names,
    level=_mostly(Level.NORMAL, *Level),
    delay_ms=_mostly(0, 1_000, 5_000),
    ahead_ms=_mostly(None, -5_000, 0, 2_000),
    held=_mostly(False, True),
    cost=_mostly(1, 2, 7),
    requirement=_mostly("", "gpu"),
    delivery=_mostly(Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE),
    key=st.none()
    | st.builds(
        IdempotencyKey,
        key=st.sampled_from(["k1", "k2"]),
        body=_mostly("body", "another"),
        scope=_mostly("", "scope"),
    ),
)


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A claim without its nonce."""

    queues: tuple[tuple[str, int], ...]
    types: tuple[str, ...]
    limit: int
    lease_ms: int
    requirements: tuple[str, ...]

    def request(self, number: int, *, everything: bool = False) -> ClaimRequest:
        """Make the request with this number; with ``everything``, for all there is."""
        return ClaimRequest(
            nonce=f"{number:016x}",
            worker=WORKER,
            queues=tuple((name, 20) for name in QUEUES) if everything else self.queues,
            types=TYPES if everything else self.types,
            limit=20 if everything else self.limit,
            lease_ms=self.lease_ms,
            requirements=("", "gpu") if everything else self.requirements,
        )


def _subsets(names: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    chosen = st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True)
    return chosen.map(tuple)


requests: st.SearchStrategy[RequestSpec] = st.builds(
    RequestSpec,
    queues=_subsets(QUEUES).flatmap(
        lambda names: st.tuples(*(st.tuples(st.just(name), st.integers(0, 4)) for name in names))
    ),
    types=_subsets(TYPES),
    limit=st.integers(1, 6),
    lease_ms=lease_ms,
    requirements=_mostly(("",), ("", "gpu"), ("gpu",)),
)

_errors = st.builds(
    ErrorInfo,
    type=st.just("ValueError"),
    message=st.sampled_from(["boom", "bang"]),
    fingerprint=st.sampled_from(["f1", "f2"]),
    kinds=st.just(("ValueError",)),
)
_snoozed: st.SearchStrategy[Outcome] = st.sampled_from([0.0, 0.5, 3.0]).map(Snoozed)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([None, b"1", b'"text"']).map(Succeeded),
    _errors.map(Failed),
    _errors.map(TimedOut),
    st.just(Rejected("never")),
    _snoozed,
    st.just(Cancelled()),
    st.booleans().map(Released),
    st.just(Held()),
    st.sampled_from(AbandonCause).map(Abandoned),
)

retentions: st.SearchStrategy[Retention] = st.builds(
    Retention,
    finished_ms=st.sampled_from([0, RETENTION_FLOOR_MS + 7, 86_400_000]),
    finished_count=st.sampled_from([0, 1_000]),
    dead_ms=st.sampled_from([0, RETENTION_FLOOR_MS + 7, 86_400_000]),
    key_ms=st.sampled_from([RETENTION_FLOOR_MS + 7, 86_400_000]),
)

_flag: st.SearchStrategy[bool | None] = st.sampled_from([None, False, False, True])
queue_settings = st.builds(
    QueueSettings, max_wait_ms=st.sampled_from([None, 1_000, 60_000]), held=_flag
)
tenant_settings = st.builds(TenantSettings, weight=st.sampled_from([None, 1, 3, 1_000]), held=_flag)
type_settings = st.builds(TypeSettings, held=_flag)
