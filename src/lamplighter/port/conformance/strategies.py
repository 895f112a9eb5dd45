"""What the state machine draws: few names, so that things meet, and times that nearly collide."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from lamplighter.model.ids import SHARD_BITS, compose, shard_of_key
from lamplighter.model.job import (
    ALONE,
    NO_VERSION,
    Delivery,
    ErrorInfo,
    IdempotencyKey,
    Level,
    NewJob,
    requirement_of,
)
from lamplighter.model.journal import Journal, Piece, Progress
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Failed,
    Held,
    Misfit,
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
GPU_ALONE = requirement_of("gpu", suspect=True)

queue_names = st.sampled_from(QUEUES)
type_names = st.sampled_from(TYPES)
tenant_names = st.sampled_from(TENANTS)
pick = st.integers(0, 40)
picks = st.lists(pick, min_size=1, max_size=4)
stale = st.integers(0, 4).map(lambda dice: dice == 0)
"""Whether to take any claim ever made instead of one that still runs."""
verbs = st.sampled_from(["cancel", "hold", "hold", "unhold", "retry", "replay", "replay", "purge"])
lease_ms = st.sampled_from([1_000, 5_000, 30_000])
passing_ms = st.sampled_from([-2_500, -1, 1, 999, 1_000, 5_000, 31_000, 61_000, 1_201_000])
"""How far the clock moves; now and then a little back."""
max_wait_ms: st.SearchStrategy[int | None] = st.sampled_from([None, 1_000, 60_000])


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

    def job(self, number: int, now: int, shard: int) -> NewJob:
        """Make the job with this number; with a key, it is in the shard of its key."""
        if self.key is not None:
            shard = shard_of_key(self.tenant, self.key.scope, self.key.key)
        return NewJob(
            id=compose(1_700_000_000_000, shard % (1 << SHARD_BITS), number),
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

plain_jobs: st.SearchStrategy[JobSpec] = st.builds(
    JobSpec,
    type=_mostly(*TYPES),
    queue=_mostly(*QUEUES),
    tenant=tenant_names,
    level=_mostly(Level.NORMAL, Level.HIGH),
    delay_ms=_mostly(0, 1_000),
    ahead_ms=st.none(),
    held=st.just(False),
    cost=_mostly(1, 2),
    requirement=st.just(""),
    delivery=st.just(Delivery.AT_LEAST_ONCE),
    key=st.none(),
)
"""A backlog in which tenants meet: one queue, mostly one type and level."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A claim without its nonce."""

    queues: tuple[tuple[str, int], ...]
    types: tuple[str, ...]
    limit: int
    lease_ms: int
    requirements: tuple[str, ...]
    max_bytes: int

    def request(self, number: int) -> ClaimRequest:
        """Make the request with this number."""
        return ClaimRequest(
            nonce=f"{number:016x}",
            worker=WORKER,
            queues=self.queues,
            types=self.types,
            limit=self.limit,
            lease_ms=self.lease_ms,
            requirements=self.requirements,
            max_bytes=self.max_bytes,
        )


max_bytes = _mostly(1 << 20, 0, 15, 30, 60)
"""Arguments are 13 to 15 bytes."""


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
    requirements=_mostly(
        ("",),
        ("", "gpu"),
        ("gpu",),
        (ALONE,),
        ("", "version:1", "gpu+version:1"),
        (NO_VERSION, "version:2", "version:2+alone"),
        ("", ALONE, "gpu", GPU_ALONE),
    ),
    max_bytes=max_bytes,
)
plain_requests: st.SearchStrategy[RequestSpec] = st.builds(
    RequestSpec,
    queues=st.just(tuple((name, 20) for name in QUEUES)),
    types=st.just(TYPES),
    limit=st.sampled_from([4, 1, 12]),
    lease_ms=lease_ms,
    requirements=st.just(("", "gpu", ALONE, GPU_ALONE)),
    max_bytes=max_bytes,
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
    st.sampled_from(["version:1", "version:2", NO_VERSION, ""]).map(
        lambda version: Misfit(version=version)
    ),
    _snoozed,
    st.just(Cancelled()),
    st.booleans().map(Released),
    st.just(Held()),
    st.sampled_from(AbandonCause).map(Abandoned),
)

journals: st.SearchStrategy[Journal] = st.builds(
    Journal,
    progress=st.none()
    | st.builds(
        Progress, done=st.integers(0, 3), total=st.none() | st.just(3.5), note=st.just("half")
    ),
    pieces=st.lists(
        st.builds(Piece, st.integers(0, 5), st.sampled_from([b"", b"one", b"two"])), max_size=3
    ).map(tuple),
    drop=st.sampled_from([(0, 0), (0, 0), (1, 3), (0, 9), (3, 1)]),
)
End = tuple[int, Outcome, Journal | None]
ends: st.SearchStrategy[End] = st.tuples(pick, outcomes, st.none() | st.none() | journals)
"""Which claim, what it came to, and its last words."""

retentions: st.SearchStrategy[Retention] = st.builds(
    Retention,
    finished_ms=st.sampled_from([0, RETENTION_FLOOR_MS + 7, 86_400_000]),
    finished_count=st.sampled_from([0, 1_000]),
    dead_ms=st.sampled_from([0, RETENTION_FLOOR_MS + 7, 86_400_000]),
    key_ms=st.sampled_from([RETENTION_FLOOR_MS + 7, 86_400_000]),
)

_flag: st.SearchStrategy[bool | None] = st.sampled_from([None, None, False, False, True])
Setting = tuple[str, str, QueueSettings | TenantSettings | TypeSettings]
settings: st.SearchStrategy[Setting] = st.one_of(
    st.tuples(
        st.just("queue"),
        queue_names,
        st.builds(QueueSettings, max_wait_ms=max_wait_ms, held=_flag),
    ),
    st.tuples(
        st.just("tenant"),
        tenant_names,
        st.builds(TenantSettings, weight=st.sampled_from([None, 1, 3, 1_000]), held=_flag),
    ),
    st.tuples(st.just("type"), type_names, st.builds(TypeSettings, held=_flag)),
)

Step = tuple[str, dict[str, object]]
_settled = st.lists(ends, min_size=1, max_size=8)
plans: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.fixed_dictionaries({"spec": plain_requests})),
        st.tuples(st.just("claim"), st.fixed_dictionaries({"spec": plain_requests})),
        st.tuples(st.just("claim"), st.fixed_dictionaries({"spec": requests})),
        st.tuples(
            st.just("submit"),
            st.fixed_dictionaries({"specs": st.lists(plain_jobs, min_size=1, max_size=8)}),
        ),
        st.tuples(
            st.just("settle"), st.fixed_dictionaries({"ends": _settled, "stale": st.just(False)})
        ),
        st.tuples(st.just("time_passes"), st.fixed_dictionaries({"ms": passing_ms})),
        st.tuples(st.just("put"), st.fixed_dictionaries({"setting": settings})),
        st.tuples(
            st.just("change"),
            st.fixed_dictionaries({"verb": verbs, "picks": picks, "running": st.booleans()}),
        ),
    ),
    min_size=8,
    max_size=30,
)
"""Steps of the machine for a test that mostly claims."""
