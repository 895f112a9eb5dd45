"""The verbs. Each docstring is a contract: `port/conformance` has a test for every sentence.

Every verb is one atomic operation of the store (of each of its shards: see `Capabilities.shards`),
judged by the store's clock. Every verb may be repeated after a lost reply: doing it twice is doing
it once. Calls of more than
``Capabilities.max_batch`` items are refused with InvalidInput before anything is written, and so
are operators' notes (``by``, ``reason``) that are not one line of at most 1,000 characters. An id
that an operator's call names twice is answered the second time as a call after it would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from lamplighter.model.changes import Action, answers, table_of
from lamplighter.port.access import Access
from lamplighter.port.activity import Activity
from lamplighter.port.guards import check_note
from lamplighter.port.inspector import Inspector
from lamplighter.port.schedules import ScheduleStore
from lamplighter.port.verbs import Part, Verbs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from lamplighter.model.job import Claim, NewJob
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.capabilities import Capabilities
    from lamplighter.port.checkup import Checkup
    from lamplighter.port.patience import Patience
    from lamplighter.port.values import (
        Beat,
        ChangeAnswer,
        Changed,
        Claimed,
        ClaimRequest,
        Expired,
        NewWorker,
        Pruned,
        QueueSettings,
        Recorded,
        Recording,
        Renewal,
        Renewed,
        Retention,
        Settled,
        Submitted,
        TenantSettings,
        TypeSettings,
    )


DEFAULT_LEASE_MS = 30_000
"""The lease of workers that say nothing else."""


class JobStore(Part):
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
        return await self._call("submit", self._call.bounded(jobs)) if jobs else []

    def __init__(self, call: Verbs, later: Callable[..., Awaitable[Claimed]]) -> None:
        super().__init__(call)
        self._later = later

    async def claim(self, request: ClaimRequest, patience: Patience | None = None) -> Claimed:
        """Hand out up to ``limit`` due jobs of the asked queues and types.

        Eligible: waiting, due, neither job, queue, type nor tenant held, requirement met; that of
        a suspect is `model.job.requirement_of` its own. Order:
        queues as asked, filled up to their quotas first and then beyond; inside a queue as
        `model/stride.py` says. Atomic: no two callers receive the same job. Each claim raises the
        job's lease number by one and sets the nonce; the lease ends ``lease_ms`` from the store's
        now. Each hand-out carries its queue's next hand-out number. Nothing more is handed out
        once the arguments come to ``max_bytes``; one job always is. A new attempt has no
        progress. Repeated with the same nonce, within an hour or while one of them runs, it
        returns the jobs still running under that nonce, without their start marks, and hands out
        nothing new; a claim that
        got nothing leaves no trace, and its repeat is a new one.
        `poll_after_ms` is the time until the next asked-for job is due: 0 when due work was left
        behind, by ``limit`` or by a bound; None when nothing asked for waits. Held jobs, and jobs
        of held queues, types or tenants, do not count. For a repeated claim it is 0.

        Without ``patience`` it never waits. With it, a claim that asks the same as the last one,
        which was told that nothing is due, waits: until a hint says that something may be, until
        that falls due which was not yet, until the patience is at its end or somebody is in a
        hurry. Then it answers, with nothing and 0 where the store has taken nothing meanwhile, and
        the caller asks again, with the room that it has by then. Hints are only hints: all of them
        may be lost, and none means that there is a job. Leases count from no earlier than the call,
        and what waits is never older than a quarter of a lease when something is handed out. A
        claim that waits and is cancelled leaves nothing claimed.
        """
        if patience is None:
            return await self._call("claim", request)
        if patience.left(request) > 0.0:
            try:
                answer = await self._later(request, patience)
            except Exception:
                patience.hurry()  # what it has taken is asked for at once, by its repeat
                raise
        else:
            patience.asks()
            answer = await self._call("claim", request)
        patience.answered(request, answer)
        return answer

    async def renew(self, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
        """Extend leases to ``lease_ms`` from the store's now, answering for each in order.

        Extended only while the job runs under exactly this fence; a lease that has ended but was
        not rescued is extended too. The answer says whether a cancel was requested. Never waits
        for a job that somebody else has locked: that one is `unknown`, neither extended nor lost.
        """
        return await self._call("renew", self._call.bounded(leases), lease_ms) if leases else []

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Write what claims came to, all in one write, answering for each in order.

        Accepted only while the job runs under exactly this fence; then `next` is written, or
        `cancelled` if that is set and a cancel was requested. Back to waiting: due after
        ``delay_ms``, behind nobody who is due later, with the requirement that
        `model.job.next_requirement` names: a suspect from then on has that of suspects, and a job
        with a ``version`` that of the versions which take it, until it is replayed or retried from
        the dead. The same fence again is `already` until the job is claimed again or removed; any
        other fence, or an unknown id, is `lost`. Going back without an error keeps the last one.
        With `only_if_expired` a lease that has not ended is left alone and answered `renewed`; with
        `only_if_unstarted` a claim that has its start mark is left alone and answered `started`. An
        attempt with `history`, and one that ends the job, is kept: see ``Inspector.attempts``. A
        settled job no longer has a lease that could end, and the record names the worker of its
        last attempt. A cancel request does not outlive the settle unless the job became
        `cancelled`. Content never makes a settle fail. If and only if the settlement is written,
        so is its `journal`, as ``record`` would. For a job that runs under this fence and that
        somebody else keeps locked it does not wait: that one is `busy`, nothing of it is written,
        and it is to be settled again; the others are settled.
        """
        return await self._call("settle", self._call.bounded(settlements)) if settlements else []

    async def record(self, recordings: Sequence[Recording]) -> list[Recorded]:
        """Keep what running attempts have to say, all in one write, answering for each in order.

        Written only while the job runs under exactly this fence, be the lease over or not.
        Progress replaces what the attempt said before, and is to be seen until the job is claimed
        again or replayed; without progress it stays. A piece of the log is kept under the lease
        number and its own; one that is there already is left as it is. Then the pieces of the
        same lease in ``drop`` are removed. Logs live as long as their job, replays included.
        Content never makes it fail. It does not extend the lease.
        With `started` the claim gets its start mark, which is as durable as a settle when it is
        answered; marked twice is marked once. ``rescue`` and ``claims_of`` tell it, and it ends
        with the claim: the next one of the job has none. A job that somebody else keeps locked is
        `busy`, as with ``settle``.
        """
        return await self._call("record", self._call.bounded(recordings)) if recordings else []

    async def rescue(self, limit: int) -> list[Expired]:
        """Read up to ``limit`` claims whose lease has ended, longest overdue first.

        Changes nothing: the write is ``settle`` with `only_if_expired`. A lease that ends later
        than now plus its own length (the clock went back) is first cut to now plus that length.
        """
        return await self._call("rescue", limit)

    async def claims_of(self, worker: str) -> list[Claim]:
        """Read the claims a worker holds, for the supervisor that buries it.

        Like those of ``rescue``, they say whether they have a start mark.
        """
        return await self._call("claims_of", worker)

    async def change(
        self,
        action: Action,
        ids: Sequence[str],
        *,
        by: str,
        reason: str,
        statuses: frozenset[str] = frozenset(),
    ) -> list[Changed]:
        """Do to jobs what an operator asks, answering for each in order.

        What is written is a function of the job's situation, which the table of the action in
        `model.changes` has. Each job is decided about and changed in one step. With ``statuses``
        only jobs are changed that may be shown as one of them at that moment; to others it is a
        `conflict`. The verbs below are this one, each with its action.
        """
        check_note(by, reason)
        if not ids:
            return []
        known = list(dict.fromkeys(self._call.bounded(ids)))
        table = table_of(action, statuses)
        found = await self._call("change", known, table, by, reason)
        return answers(table, ids, found)

    async def cancel(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Cancel jobs.

        Blocked or waiting, held or not: `done`, and it never runs. Running: `requested`; settle
        decides once. Asked again: `already`. Other terminal states: `conflict`. Unknown: `unknown`.
        """
        return await self.change(Action.CANCEL, ids, by=by, reason=reason)

    async def hold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Keep jobs from being handed out until unheld.

        Waiting or blocked: `done`; held before: `already`, and the first mark stays. Running:
        `done` too: it is kept if the job comes back to waiting. Terminal: `conflict`.
        """
        return await self.change(Action.HOLD, ids, by=by, reason=reason)

    async def unhold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Let held jobs go on, due when they were due.

        Not held: `already`. Terminal: `conflict`.
        """
        return await self.change(Action.UNHOLD, ids, by=by, reason=reason)

    async def retry(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Make waiting jobs due now; due already: `already`; running: `conflict`.

        A dead job goes on in the same life: due now, counters at zero, no suspect; generation,
        attempts, logs and progress stay, and what made it dead is gone: reason, error and hold.
        Other terminal states: `conflict`. A hold of a waiting job stays.
        """
        return await self.change(Action.RETRY, ids, by=by, reason=reason)

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Run terminal jobs again: same id, generation + 1, due now, counters at zero.

        Result, error, reason, progress, cancel request and hold of the old life are gone; its
        attempts and logs stay. Not terminal: `conflict`. The idempotency key still belongs to the
        job.
        """
        return await self.change(Action.REPLAY, ids, by=by, reason=reason)

    async def purge(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Remove terminal jobs with their attempts and logs, whatever their age.

        Not terminal: `conflict`. A key that named the job stays and answers `gone`.
        """
        return await self.change(Action.PURGE, ids, by=by, reason=reason)

    async def erase(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        """Remove terminal jobs so that nothing that was given to them or came of them is left.

        As `purge`, and the idempotency key goes too: the same key again is a new job. A run of a
        schedule keeps the id of the job, and nothing else. Not terminal: `conflict`.
        """
        return await self.change(Action.ERASE, ids, by=by, reason=reason)

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Remove up to ``limit`` terminal jobs past their retention, and what else has aged out.

        Succeeded, cancelled and expired jobs go by age and by count, oldest first; dead ones by
        their own age; attempts and logs with their jobs. Never anything younger than 15 minutes,
        never a job that is not terminal. Keys go after their own age, counted from their
        creation, once their job is gone.
        """
        return await self._call("prune", retention, limit)


class Membership(Part):
    """Who is alive."""

    async def join(self, worker: NewWorker) -> Beat:
        """Enter a worker and publish the types it knows. Joining twice is joining once.

        Answers like a beat, as one who is known; itself is among the `workers`. The slot of its
        versions is the one it gave last.
        """
        return await self._call("join", worker)

    async def beat(self, worker: str, running: int, unstarted: Sequence[str] = ()) -> Beat:
        """Say that a worker lives; `known` is False when the store has forgotten it.

        ``unstarted`` has the ids of jobs that it, or a process named ``worker``/…, has claimed
        without having called their handlers: until the next beat these are shown as `claimed`.
        At-most-once jobs are shown so by their start mark alone.

        `workers` counts all whose last sign of life is not 30 s old: those who are not dead.
        `overdue` is False only if no lease has ended and no schedule is due.
        """
        return await self._call("beat", worker, running, unstarted)

    async def leave(self, worker: str) -> None:
        """Take a worker out. Unknown workers are no error."""
        await self._call("leave", worker)

    async def lead(self, role: str, holder: str, term_ms: int) -> bool:
        """Try to hold a role for a while; True while this holder has it.

        An optimisation for work worth doing once. Nothing is correct only because of it.
        """
        return await self._call("lead", role, holder, term_ms)


class Settings(Part):
    """What operators set. Each raises the settings version that `beat` answers."""

    async def put_queue(self, name: str, settings: QueueSettings, *, by: str, reason: str) -> None:
        """Set a queue's `max_wait` or hold; acts on the next claim, free of the backlog."""
        check_note(by, reason)
        await self._call("put_queue", name, settings, by, reason)

    async def enter_queues(self, names: Sequence[str], *, tenant: str, most: int) -> bool:
        """Note that a tenant brings these queues, all of them or none.

        False: with these it would have brought more than ``most`` that were not removed since. A
        name that somebody has brought stays theirs, and counts once. Moves nothing else: a queue
        is listed from its first job on.
        """
        return await self._call("enter_queues", names, tenant, most)

    async def remove_queue(self, name: str, *, by: str, reason: str) -> ChangeAnswer:
        """Remove an empty queue, its settings, and the note of who brought it: `done`.

        With jobs that wait, held or not, are blocked or run, or with a worker that is not dead and
        serves it: `conflict`. Removed before: `already`; unknown: `unknown`. It is listed again
        while it has jobs, and for good when somebody sets something on it.
        """
        check_note(by, reason)
        return await self._call("remove_queue", name)

    async def put_tenant(
        self, name: str, settings: TenantSettings, *, by: str, reason: str
    ) -> None:
        """Set a tenant's weight or hold, at a cost free of the backlog.

        A weight acts on the backlog from the next hand-out on. A hold puts the tenant's turns to
        sleep at once; unholding wakes them at the clock, like any turn that wakes.
        """
        check_note(by, reason)
        await self._call("put_tenant", name, settings, by, reason)

    async def put_type(self, name: str, settings: TypeSettings, *, by: str, reason: str) -> None:
        """Set a type's hold; acts on the next claim."""
        check_note(by, reason)
        await self._call("put_type", name, settings, by, reason)


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
    ) -> bool:
        """Wait until one of the topics may have news, or the time is over; True for news.

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
CANCEL_TOPIC = "cancel"
"""Topic of running jobs for which a cancel was requested."""


class Driver(Protocol):
    """What an engine brings: its verbs, and how its store is opened, closed and set up.

    `Engine` has the contract of the methods; guards and bounds stand there, too.
    """

    @property
    def capabilities(self) -> Capabilities:
        """How this engine differs from others; some of it is known once the store is open."""
        ...

    @property
    def where(self) -> str:
        """The store, as it is named in errors."""
        ...

    @property
    def wakeup(self) -> Wakeup:
        """Hints between processes; while the store is open."""
        ...

    async def open(self, *, create: bool) -> Mapping[str, Callable[..., Awaitable[Any]]]:
        """Open the store; returns the verbs by their names."""
        ...

    async def claim_later(self, request: ClaimRequest, patience: Patience) -> Claimed:
        """Wait for what a claim asks for, and claim it by the way where that is possible."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...

    async def migrate(self, *, run: Sequence[str], read: Sequence[str]) -> tuple[int, int]:
        """Bring the store to this version."""
        ...

    async def grant(self, *, run: Sequence[str], read: Sequence[str]) -> None:
        """Let users of the database run jobs, or only look."""
        ...

    async def check_up(self, *, lease_ms: int) -> Checkup:
        """Look at the set-up and settings of the store."""
        ...


class Engine:
    """One store: the verbs of a driver behind guards, bounds and telemetry."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._is_open = False
        self._verbs = verbs = Verbs(driver.where, driver.capabilities.max_batch)
        self.jobs = JobStore(verbs, driver.claim_later)
        """What moves jobs."""
        self.schedules = ScheduleStore(verbs)
        """What moves schedules."""
        self.membership = Membership(verbs)
        """Who is alive."""
        self.settings = Settings(verbs)
        """What operators set."""
        self.access = Access(verbs)
        """Tokens and the audit log."""
        self.activity = Activity(verbs)
        """What workers did, and what waits as a whole."""
        self.inspector = Inspector(verbs)
        """Reads only."""

    @property
    def capabilities(self) -> Capabilities:
        """How this engine differs from others."""
        return self._driver.capabilities

    @property
    def wakeup(self) -> Wakeup:
        """Hints between processes."""
        return self._driver.wakeup if self._is_open else self._verbs.refuse()

    async def open(self, *, create: bool = True) -> None:
        """Connect, check that the store is ours and of our version; fill an empty one.

        Without ``create`` a store that is not there is refused with StoreUnreachable, and none
        is made.
        """
        if not self._is_open:
            self._verbs.open(await self._driver.open(create=create))
            self._is_open = True

    async def close(self) -> None:
        """Finish what is being written and let go of everything. Closing twice is closing once."""
        if self._is_open:
            self._is_open = False
            self._verbs.close()
            await self._driver.close()

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        """Bring the store to this version, and `grant`; gives the version before and after.

        Both happen or neither: where `grant` would refuse, no store is made or changed.
        """
        return await self._driver.migrate(run=run, read=read)

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        """Let these users of the database run jobs, or only look; doing it twice is doing it once.

        They keep these rights when the store is migrated. A user who does not exist is refused
        with InvalidOption, and so is everyone where ``Capabilities.roles`` says no.
        """
        await self._driver.grant(run=run, read=read)

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        """Look at the set-up and settings of the store; works before it is opened.

        Changes nothing, and makes no store where none is: that is a finding, like everything
        else that `open` would refuse. Raises only when the store cannot be reached at all.
        ``lease_ms`` is the lease of the workers, against which the clocks are compared.
        """
        return await self._driver.check_up(lease_ms=lease_ms)


_PARTS = (JobStore, ScheduleStore, Membership, Settings, Access, Activity, Inspector)
_NAMED = {action.value for action in Action}
"""Methods that are the verb `change`, each with its action."""
VERBS = tuple(sorted({name for part in _PARTS for name in vars(part) if name[0] != "_"} - _NAMED))
"""The names of all verbs; the table of every driver has exactly these."""
