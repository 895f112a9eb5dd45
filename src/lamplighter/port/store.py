"""The verbs. Each docstring is a contract: `port/conformance` has a test for every sentence.

Every verb is one atomic operation of the store (of each of its shards: see `Capabilities.shards`),
judged by the store's clock. Every verb may be repeated after a lost reply: doing it twice is doing
it once. Calls of more than
``Capabilities.max_batch`` items are refused with InvalidInput before anything is written, and so
are operators' notes (``by``, ``reason``) that are not one line of at most 1,000 characters. An id
that an operator's call names twice is answered the second time as a call after it would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lamplighter.port.values import COUNT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from lamplighter.model.job import Attempt, Claim, JobRecord, NewJob
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.access import Access
    from lamplighter.port.activity import Activity
    from lamplighter.port.capabilities import Capabilities
    from lamplighter.port.checkup import Checkup
    from lamplighter.port.schedules import ScheduleStore
    from lamplighter.port.values import (
        Beat,
        Changed,
        Claimed,
        ClaimRequest,
        DeadGroup,
        Expired,
        Explanation,
        JobFilter,
        JobPage,
        LogPiece,
        NewWorker,
        Pruned,
        QueueInfo,
        QueueSettings,
        Recorded,
        Recording,
        Renewal,
        Renewed,
        Retention,
        Settled,
        Submitted,
        TenantInfo,
        TenantSettings,
        TypeRow,
        TypeSettings,
        WorkerInfo,
    )


DEFAULT_LEASE_MS = 30_000
"""The lease of workers that say nothing else."""


class JobStore(Protocol):
    """Everything that moves a job."""

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store new jobs, all in one write, and answer for each in order.

        A job is due at the store's now plus ``delay_ms``, or at ``run_at_ms``; the past means
        now. An id that exists, finished jobs included, is `already` and nothing changes. With an
        idempotency key: first use creates key and job together; the same body again is `already`
        with the existing id; another body is `conflict`; a key whose job was pruned is `gone`
        with the old id. Two equal ids or keys within one call follow the same rules. A held job
        waits until it is unheld. When the call raises, none of its jobs is stored.
        """
        ...

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Hand out up to ``limit`` due jobs of the asked queues and types.

        Eligible: waiting, due, neither job, queue, type nor tenant held, requirement met; that of
        a suspect is `model.job.requirement_of` its own. Order:
        queues as asked, filled up to their quotas first and then beyond; inside a queue as
        `model/stride.py` says. Atomic: no two callers receive the same job. Each claim raises the
        job's lease number by one and sets the nonce; the lease ends ``lease_ms`` from the store's
        now. Each hand-out carries its queue's next hand-out number. Nothing more is handed out
        once the arguments come to ``max_bytes``; one job always is. A new attempt has no
        progress. Repeated with the same nonce, within an hour or while one of them runs, it
        returns the jobs still running under that nonce and hands out nothing new; a claim that
        got nothing leaves no trace, and its repeat is a new one. Never waits.
        `poll_after_ms` is the time until the next asked-for job is due: 0 when due work was left
        behind, by ``limit`` or by a bound; None when nothing asked for waits. Held jobs, and jobs
        of held queues, types or tenants, do not count. For a repeated claim it is 0.
        """
        ...

    async def renew(self, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
        """Extend leases to ``lease_ms`` from the store's now, answering for each in order.

        Extended only while the job runs under exactly this fence; a lease that has ended but was
        not rescued is extended too. The answer says whether a cancel was requested.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Write what claims came to, all in one write, answering for each in order.

        Accepted only while the job runs under exactly this fence; then `next` is written, or
        `cancelled` if that is set and a cancel was requested. Back to waiting: due after
        ``delay_ms``, behind nobody who is due later; a suspect from then on has the requirement
        of suspects. The same fence again is `already` until the
        job is claimed again or removed; any other fence, or an unknown id, is `lost`. Going back
        without an error keeps the last one. With `only_if_expired` a lease that has not ended is
        left alone and answered `renewed`. An attempt with `history`, and one that ends the job,
        is kept: see ``Inspector.attempts``. A settled job no longer has a lease that could end,
        and the record names the worker of its last attempt. A cancel request does not outlive
        the settle unless the job became `cancelled`. Content never makes a settle fail. If and
        only if the settlement is written, so is its `journal`, as ``record`` would.
        """
        ...

    async def record(self, recordings: Sequence[Recording]) -> list[Recorded]:
        """Keep what running attempts have to say, all in one write, answering for each in order.

        Written only while the job runs under exactly this fence, be the lease over or not.
        Progress replaces what the attempt said before, and is to be seen until the job is claimed
        again or replayed; without progress it stays. A piece of the log is kept under the lease
        number and its own; one that is there already is left as it is. Then the pieces of the
        same lease in ``drop`` are removed. Logs live as long as their job, replays included.
        Content never makes it fail. It does not extend the lease.
        """
        ...

    async def rescue(self, limit: int) -> list[Expired]:
        """Read up to ``limit`` claims whose lease has ended, longest overdue first.

        Changes nothing: the write is ``settle`` with `only_if_expired`. A lease that ends later
        than now plus its own length (the clock went back) is first cut to now plus that length.
        """
        ...

    async def claims_of(self, worker: str) -> list[Claim]:
        """Read the claims a worker holds, for the supervisor that buries it."""
        ...

    async def cancel(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Cancel jobs, answering for each in order.

        Blocked or waiting, held or not: `done`, and it never runs. Running: `requested`; settle
        decides once. Asked again: `already`. Other terminal states: `conflict`. Unknown: `unknown`.
        """
        ...

    async def hold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Keep jobs from being handed out until unheld, answering for each in order.

        Waiting or blocked: `done`; held before: `already`, and the first mark stays. Running:
        `done` too: it is kept if the job comes back to waiting. Terminal: `conflict`.
        """
        ...

    async def unhold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Let held jobs go on, due when they were due.

        Not held: `already`. Terminal: `conflict`.
        """
        ...

    async def retry(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Make waiting jobs due now; due already: `already`; running: `conflict`.

        On a dead job it is ``replay``. Other terminal states: `conflict`. A hold stays.
        """
        ...

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Run terminal jobs again: same id, generation + 1, due now, counters at zero.

        Result, error, reason, progress, cancel request and hold of the old life are gone; its
        attempts and logs stay. Not terminal: `conflict`. The idempotency key still belongs to the
        job.
        """
        ...

    async def purge(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Remove terminal jobs with their attempts and logs, whatever their age.

        Not terminal: `conflict`. A key that named the job stays and answers `gone`.
        """
        ...

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Remove up to ``limit`` terminal jobs past their retention, and what else has aged out.

        Succeeded, cancelled and expired jobs go by age and by count, oldest first; dead ones by
        their own age; attempts and logs with their jobs. Never anything younger than 15 minutes,
        never a job that is not terminal. Keys go after their own age, counted from their
        creation, once their job is gone.
        """
        ...


class Membership(Protocol):
    """Who is alive."""

    async def join(self, worker: NewWorker) -> Beat:
        """Enter a worker and publish the types it knows. Joining twice is joining once.

        Answers like a beat, as one who is known; itself is among the `workers`.
        """
        ...

    async def beat(self, worker: str, running: int) -> Beat:
        """Say that a worker lives; `known` is False when the store has forgotten it.

        `workers` counts all whose last sign of life is not 30 s old: those who are not dead. A
        store that `tells_calm` says whether anything is overdue.
        """
        ...

    async def leave(self, worker: str) -> None:
        """Take a worker out. Unknown workers are no error."""
        ...

    async def lead(self, role: str, holder: str, term_ms: int) -> bool:
        """Try to hold a role for a while; True while this holder has it.

        An optimisation for work worth doing once. Nothing is correct only because of it.
        """
        ...


class Settings(Protocol):
    """What operators set. Each raises the settings version that `beat` answers."""

    async def put_queue(self, name: str, settings: QueueSettings, *, by: str, reason: str) -> None:
        """Set a queue's `max_wait` or hold; acts on the next claim, free of the backlog."""
        ...

    async def put_tenant(
        self, name: str, settings: TenantSettings, *, by: str, reason: str
    ) -> None:
        """Set a tenant's weight or hold, at a cost free of the backlog.

        A weight acts on the backlog from the next hand-out on. A hold puts the tenant's turns to
        sleep at once; unholding wakes them at the clock, like any turn that wakes.
        """
        ...

    async def put_type(self, name: str, settings: TypeSettings, *, by: str, reason: str) -> None:
        """Set a type's hold; acts on the next claim."""
        ...


class Wakeup(Protocol):
    """Hints that make things fast. Losing all of them only makes things later by one poll."""

    async def notify(self, topic: str, *, jobs: Mapping[str, int] | None = None) -> None:
        """Wake those who wait for this topic. Never fails, never blocks, may be lost.

        ``jobs`` says how many new jobs of each type the news is about: then it is enough to wake
        one for each job, who can run it. Without it everybody is to be woken.
        """
        ...

    async def wait(
        self,
        topics: Sequence[str],
        timeout: float,
        *,
        types: Collection[str] | None = None,
        ahead: ClaimRequest | None = None,
    ) -> bool:
        """Wait until one of the topics may have news, or the time is over; True for news.

        ``ahead`` is the claim that the caller makes next. A store that `claims_ahead` may make it
        together with the news; the caller must then make it too, under its nonce, to get what it
        was handed; with a limit of 0, where nothing more is wanted.
        ``types`` says which jobs the caller can run, so that it need not be woken for others.
        News that came between two waits of this engine on the same topic is not missed, unless it
        was about jobs and somebody else was woken for each of them.
        """
        ...


def queue_topic(queue: str, *, suspect: bool = False) -> str:
    """Topic of work in a queue; that of suspects is one of its own."""
    return f"alone:{queue}" if suspect else f"queue:{queue}"


FINISHED_TOPIC = "finished"
"""Topic of jobs that ended."""


class Inspector(Protocol):
    """Reads only: whoever holds this cannot move a job."""

    async def job(self, job_id: str) -> JobRecord | None:
        """Give one job, or None."""
        ...

    async def jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage:
        """List jobs, newest first. A page may be short and still have a cursor."""
        ...

    async def explain(self, job_id: str) -> Explanation | None:
        """Say why a job is not running, the most decisive reason first.

        A waiting suspect has that among its reasons.
        """
        ...

    async def counts(self) -> dict[str, int]:
        """Count jobs per state, each exact up to 10,000."""
        ...

    async def queues(self, *, most: int = COUNT_LIMIT) -> list[QueueInfo]:
        """List queues by name; their waiting jobs are counted up to ``most``.

        With 0 no waiting job is looked at, for who asks for the names alone.
        """
        ...

    async def queue(self, name: str) -> QueueInfo | None:
        """Give one queue as ``queues`` has it, or None."""
        ...

    async def tenants(self) -> list[TenantInfo]:
        """List tenants that have settings, waiting or running jobs, by name; at most 1,000."""
        ...

    async def tenant(self, name: str) -> TenantInfo | None:
        """Give one tenant as ``tenants`` has it, however many there are, or None."""
        ...

    async def types(self) -> list[TypeRow]:
        """List published job types by name, one row per version."""
        ...

    async def workers(self) -> list[WorkerInfo]:
        """List workers, oldest first."""
        ...

    async def attempts(self, job_id: str) -> list[Attempt]:
        """Give a job's attempts of all its lives, oldest first.

        Those that failed, those that ended the job, and the present one, which is `running`. One
        after which the job waits again without a failure leaves no trace. One that ended the job
        as cancelled is called `cancelled`, unless it failed. Its number is the one its handler
        was told: it counts the handler's own failures, so that several may have the same.
        """
        ...

    async def logs(
        self,
        job_id: str,
        *,
        tenant: str | None = None,
        after: tuple[int, int] | None = None,
        limit: int = 100,
    ) -> list[LogPiece]:
        """Give pieces of a job's log, oldest first: by lease number, then by their own.

        Only those behind ``after`` (lease, number), and only if the job is of ``tenant``, when
        these are given. An unknown job has none.
        """
        ...

    async def dead_groups(self, which: JobFilter) -> list[DeadGroup]:
        """Group dead letters by type and fingerprint, most frequent first."""
        ...


class Engine(Protocol):
    """One store, opened."""

    @property
    def capabilities(self) -> Capabilities:
        """How this engine differs from others."""
        ...

    @property
    def jobs(self) -> JobStore:
        """What moves jobs."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """What moves schedules."""
        ...

    @property
    def membership(self) -> Membership:
        """Who is alive."""
        ...

    @property
    def settings(self) -> Settings:
        """What operators set."""
        ...

    @property
    def access(self) -> Access:
        """Tokens and the audit log."""
        ...

    @property
    def wakeup(self) -> Wakeup:
        """Hints between processes."""
        ...

    @property
    def activity(self) -> Activity:
        """What workers did, and what waits as a whole."""
        ...

    @property
    def inspector(self) -> Inspector:
        """Reads only."""
        ...

    async def open(self, *, create: bool = True) -> None:
        """Connect, check that the store is ours and of our version; fill an empty one.

        Without ``create`` a store that is not there is refused with StoreUnreachable, and none
        is made.
        """
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of everything. Closing twice is closing once."""
        ...

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        """Bring the store to this version, and `grant`; gives the version before and after.

        Both happen or neither: where `grant` would refuse, no store is made or changed.
        """
        ...

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        """Let these users of the database run jobs, or only look; doing it twice is doing it once.

        They keep these rights when the store is migrated. A user who does not exist is refused
        with InvalidOption, and so is everyone where ``Capabilities.roles`` says no.
        """
        ...

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        """Look at the set-up and settings of the store; works before it is opened.

        Changes nothing, and makes no store where none is: that is a finding, like everything
        else that `open` would refuse. Raises only when the store cannot be reached at all.
        ``lease_ms`` is the lease of the workers, against which the clocks are compared.
        """
        ...
