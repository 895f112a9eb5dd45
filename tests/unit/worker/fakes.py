"""Stand-ins for what surrounds a part of a worker."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

from lamplighter.model.job import Claim, Fence, Job, JobState, Level
from lamplighter.port.patience import Patience
from lamplighter.port.values import Claimed, Recorded, RenewAnswer, Renewed, SettleAnswer, Settled
from lamplighter.registry import JobType, Registry
from lamplighter.worker.run import Run


def make_claim(
    number: int = 0,
    *,
    type: str = "work",
    args: bytes = b"{}",
    level: Level = Level.NORMAL,
    **fields,
) -> Claim:
    job = Job(
        id=f"{number:026d}",
        type=type,
        args=args,
        queue="default",
        level=level,
        tenant="default",
        due_at_ms=0,
        created_at_ms=0,
        **fields,
    )
    return Claim(job=job, fence=Fence(1, "f" * 16), worker="w/c0", handout=number)


def make_run(
    function: Callable[..., object],
    number: int = 0,
    *,
    args: bytes = b"{}",
    timeout: float = 60.0,
    vouched_at: float = 1e12,
    **options,
) -> Run:
    job_type = JobType(function, name="work", **options)
    return Run(number, make_claim(number, args=args), job_type, timeout, vouched_at)


def registry_of(*functions: Callable[..., object]) -> Registry:
    registry = Registry()
    for function in functions:
        registry.add(JobType(function))
    return registry


class FakeLink:
    """Remembers what was said; can be told to be congested."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.congested = False
        self.blocked = False
        self.unblocked = asyncio.Event()

    def say(self, message: object) -> None:
        self.said.append(message)

    def flush(self) -> bool:
        return not self.blocked

    async def drained(self) -> None:
        await self.unblocked.wait()

    def of(self, kind: type) -> list:
        return [message for message in self.said if isinstance(message, kind)]


class FakeJobs:
    """A store of jobs that answers as it is told."""

    def __init__(self) -> None:
        self.requests: list = []
        self.settled: list = []
        self.renewals: list = []
        self.recorded: list = []
        self.claims: list[Claim] = []
        self.poll_after_ms: int | None = None
        self.patience: Patience | None = None
        """Of whoever claimed last."""
        self.held: dict[str, bool] = {}
        self.locked: set[str] = set()
        self.cancelled: set[str] = set()
        self.failures: list[Exception] = []
        self.answers: dict[str, SettleAnswer] = {}
        self.expired: list = []
        self.gate: asyncio.Event | None = None

    async def _pass(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

    async def claim(self, request, patience=None) -> Claimed:
        """Answer at once; one that gets nothing is kept waiting for a moment, as a store would."""
        self.requests.append(request)
        self.patience = patience
        await self._pass()
        taken, self.claims = self.claims[: request.limit], self.claims[request.limit :]
        if not taken:
            await asyncio.sleep(0.001)
        return Claimed(taken, self.poll_after_ms)

    async def claims_of(self, worker: str) -> list[Claim]:
        await self._pass()
        return list(self.claims)

    async def settle(self, settlements) -> list[Settled]:
        await self._pass()
        if free := [s for s in settlements if s.id not in self.locked]:
            self.settled.append(free)
        return [
            Settled(s.id, SettleAnswer.BUSY, JobState.RUNNING)
            if s.id in self.locked
            else Settled(s.id, self.answers.get(s.id, SettleAnswer.DONE), s.next.state)
            for s in settlements
        ]

    async def renew(self, leases, lease_ms: int) -> list[Renewed]:
        self.renewals.append([lease.id for lease in leases])
        await self._pass()
        return [
            Renewed(lease.id, self._renewal(lease.id), lease.id in self.cancelled)
            for lease in leases
        ]

    def _renewal(self, job_id: str) -> RenewAnswer:
        if job_id in self.locked:
            return RenewAnswer.UNKNOWN
        return RenewAnswer.HELD if self.held.get(job_id, True) else RenewAnswer.LOST

    async def record(self, recordings) -> list[Recorded]:
        await self._pass()
        if free := [one for one in recordings if one.id not in self.locked]:
            self.recorded.append(free)
        return [
            Recorded(one.id, held=False, busy=True)
            if one.id in self.locked
            else Recorded(one.id, self.held.get(one.id, True))
            for one in recordings
        ]

    async def rescue(self, limit: int) -> list:
        await self._pass()
        return self.expired[:limit]

    def outcomes(self) -> dict[str, str]:
        return {s.id: s.outcome for batch in self.settled for s in batch}

    def states(self) -> dict[str, JobState]:
        return {s.id: s.next.state for batch in self.settled for s in batch}


class FakeWakeup:
    def __init__(self) -> None:
        self.notified: list[str] = []
        self.waits: list[tuple[list[str], float, tuple[str, ...]]] = []

    async def notify(self, topic: str, *, jobs=None) -> None:
        self.notified.append(topic)

    async def wait(self, topics, timeout: float, *, types=None) -> bool:
        self.waits.append((list(topics), timeout, types))
        await asyncio.sleep(min(timeout, 0.01))
        return False


class FakeInspector:
    """Reads of a store that knows the states of some jobs."""

    def __init__(self) -> None:
        self.states: dict[str, JobState] = {}

    async def job(self, job_id: str) -> SimpleNamespace | None:
        state = self.states.get(job_id, JobState.RUNNING)
        return SimpleNamespace(state=state)


def make_engine() -> SimpleNamespace:
    return SimpleNamespace(
        jobs=FakeJobs(),
        inspector=FakeInspector(),
        wakeup=FakeWakeup(),
        capabilities=SimpleNamespace(max_batch=500, many_machines=False),
    )


class Clock:
    """A runtime whose time stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.wall = 0.0

    def now_ms(self) -> int:
        return int((self.seconds + self.wall) * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def boottime(self) -> float:
        return self.seconds

    def random(self) -> float:
        return 0.0

    def random_bits(self, bits: int) -> int:
        return 1

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    """Let all that is ready on the loop, and all that this makes ready, go as far as it can."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait for a condition; a test that waits in vain fails here."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, also outside this process
            await asyncio.sleep(0.001)
