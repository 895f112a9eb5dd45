"""What a supervisor knows of one child's claims. Pure bookkeeping: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from lamplighter.model.job import Fence


@dataclass(slots=True)
class Entry:
    """One claim of a child."""

    number: int
    id: str
    lease: int
    nonce: str
    kept_at: float
    """When the claim or the last acknowledged renewal was *sent*; the lease counts from here."""
    type: str
    started: bool = False
    started_at: float = 0.0
    """When the child says that its time began."""
    hard_end: float | None = None
    """When the child must be killed for it; None before the start and after the handler's end."""
    cancel_told: bool = False
    unsure: bool = False
    """The last renewal could not tell: another client has the job locked."""

    @property
    def fence(self) -> Fence:
        """The right to write about it."""
        return Fence(self.lease, self.nonce)


@dataclass(slots=True)
class Ledger:
    """The claims of one child, by the child's own number for each."""

    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    hanging: dict[int, float] = field(default_factory=dict[int, float])
    """Handlers that were told to end because their claim was lost, and since when."""
    forsaken: list[Entry] = field(default_factory=list[Entry])
    """Started claims whose lease we let run out. Nobody knows their end; whoever buries the
    child must not take them for claims that were never started."""

    def __len__(self) -> int:
        return len(self.entries)

    def claimed(
        self, nonce: str, first: int, jobs: Iterable[tuple[str, int, str]], asked_at: float
    ) -> None:
        """Enter new claims."""
        entries = self.entries
        for number, (job_id, lease, job_type) in enumerate(jobs, first):
            entries[number] = Entry(number, job_id, lease, nonce, asked_at, job_type)

    def started(self, runs: Iterable[tuple[int, float]], at: float) -> None:
        """Note handlers whose time begins ``at`` an instant, each with its hard end."""
        for number, hard_end in runs:
            entry = self.entries.get(number)
            if entry is not None:
                entry.started = True
                entry.started_at = at
                entry.hard_end = hard_end

    def extended(self, runs: Iterable[tuple[int, float]]) -> None:
        """Note handlers that may go on until another hard end."""
        for number, hard_end in runs:
            entry = self.entries.get(number)
            if entry is not None and entry.hard_end is not None:
                entry.hard_end = hard_end

    def ended(self, numbers: Iterable[int]) -> None:
        """Note handlers that are done but not written: they need a lease, not a hard end."""
        for number in numbers:
            # Lost while it was being written: its handler does not hang, it has ended.
            self.hanging.pop(number, None)
            entry = self.entries.get(number)
            if entry is not None:
                entry.hard_end = None

    def drop(self, numbers: Iterable[int]) -> list[Entry]:
        """Forget claims; gives those that were known."""
        found = (self.entries.pop(number, None) for number in numbers)
        return [entry for entry in found if entry is not None]

    def lose(self, numbers: Collection[int], now: float) -> None:
        """Take claims away; a handler that is at work for one is watched until it has ended."""
        for number in numbers:
            entry = self.entries.get(number)
            if entry is not None and entry.hard_end is not None:
                self.hanging[number] = now
        self.forsake(numbers)

    def forsake(self, numbers: Iterable[int]) -> None:
        """Keep these leases no longer, but remember which of them were started."""
        self.forsaken += [entry for entry in self.drop(numbers) if entry.started]

    def forget(self, entries: Iterable[Entry], held: Collection[tuple[str, Fence]]) -> None:
        """Forget those of the forsaken ``entries`` that the store does not show as held."""
        gone = {id(entry) for entry in entries if (entry.id, entry.fence) not in held}
        self.forsaken = [entry for entry in self.forsaken if id(entry) not in gone]

    def by_fence(self) -> dict[tuple[str, Fence], Entry]:
        """Everything known, by job and fence, as the store names claims."""
        known = (*self.forsaken, *self.entries.values())
        return {(entry.id, entry.fence): entry for entry in known}

    def renewed(self, numbers: Iterable[int], sent_at: float) -> None:
        """Note leases that the store has extended."""
        for number in numbers:
            entry = self.entries.get(number)
            if entry is not None:
                entry.kept_at = sent_at

    def kept_since(self, now: float) -> float:
        """The instant from which on every lease here is known to have been kept."""
        return min((entry.kept_at for entry in self.entries.values()), default=now)

    def unstarted(self) -> list[Entry]:
        """Claims whose handler has not run."""
        return [entry for entry in self.entries.values() if not entry.started]

    def running(self) -> int:
        """Count handlers that are running."""
        return sum(entry.hard_end is not None for entry in self.entries.values())

    def unwritten(self) -> int:
        """Count handlers that are done, but whose results are not known to be written."""
        return sum(entry.started and entry.hard_end is None for entry in self.entries.values())

    def at_work(self) -> frozenset[str]:
        """Return the types of handlers that run or whose results are not written, lost ones too."""
        lost = (entry for entry in self.forsaken if entry.number in self.hanging)
        return frozenset(e.type for e in (*self.entries.values(), *lost) if e.started)

    def overdue(self, now: float) -> list[Entry]:
        """Claims past their hard end."""
        return [
            entry
            for entry in self.entries.values()
            if entry.hard_end is not None and entry.hard_end <= now
        ]

    def stale(self, now: float, lease: float, *, earlier: float = 0.0) -> list[Entry]:
        """Claims nobody can vouch for any more: not renewed within ``lease`` seconds.

        Unsure ones are given up so much ``earlier``: a child believes in all of its leases or in
        none, and must not give up the others with them.
        """
        return [
            entry
            for entry in self.entries.values()
            if entry.kept_at + (lease - earlier if entry.unsure else lease) <= now
        ]

    def to_renew(
        self, now: float, *, age: float, watched_after: float, spared: Collection[int] = ()
    ) -> list[Entry]:
        """Claims whose lease has reached ``age``, or whose handler runs for a while.

        The second kind is asked about more often than its lease needs, because the answer says
        whether a cancel was requested. Claims past their hard end are not renewed, but for those
        ``spared``, whose process lives on for a bounded while.
        """
        return [
            entry
            for entry in self.entries.values()
            if (entry.hard_end is None or entry.hard_end > now or entry.number in spared)
            and (
                entry.kept_at + age <= now
                or (entry.started and entry.started_at + watched_after <= now)
            )
        ]
