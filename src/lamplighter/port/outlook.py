"""Jobs that nobody runs: what is said of them from what a store knows of workers and jobs."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.counts import counted
from lamplighter.model.names import DEFAULT_QUEUE
from lamplighter.port.checkup import note, ok, problem, warning
from lamplighter.port.health import DEAD_MS, SUSPECT_MS
from lamplighter.port.running import GONE, worker_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from lamplighter.model.job import JobRecord
    from lamplighter.port.checkup import Finding
    from lamplighter.port.values import QueueInfo, WorkerInfo

MOST_NAMED = 5
_START = "start a worker for them, as in `lamplighter worker MODULE:APP`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Who works on a store, and what waits there."""

    workers: Sequence[WorkerInfo]
    queues: Sequence[QueueInfo]
    running: Sequence[JobRecord]
    """Jobs that are claimed, or as many as were looked at."""
    waiting: Collection[tuple[str, str]]
    """Types of which jobs are due, each with the queue they are in, as far as was looked."""
    unfit: Collection[str] = ()
    """Types that have due jobs whose arguments no live version takes."""
    homes: Collection[str] = ()
    """Queues that published types have as their own."""

    @property
    def alive(self) -> list[WorkerInfo]:
        """Workers that are not known to be dead."""
        return [worker for worker in self.workers if worker.lives]


def findings(seen: Outlook) -> list[Finding]:
    """Judge all of it; without a live worker it is enough to say that."""
    some = [workers(seen), running(seen)]
    if not seen.alive:
        return some
    return [*some, queues(seen), types(seen), versions(seen), unused(seen)]


def workers(seen: Outlook) -> Finding:
    """Judge whether anybody is there to run what waits."""
    check, alive = "workers", seen.alive
    silent = [worker.id for worker in alive if worker.state == "suspect"]
    if not alive:
        if seen.waiting or seen.running:
            return warning(check, "none is alive, and jobs wait or are to be given back", _START)
        return note(check, "none is alive")
    if silent:
        have = "has" if len(silent) == 1 else "have"
        return warning(
            check,
            f"{len(silent)} of {len(alive)} {have} given no sign of life for "
            f"{SUSPECT_MS // 1000} s: {_named(silent)}",
            "look whether they hang or cannot reach the store; after "
            f"{DEAD_MS // 1000} s they count as dead",
        )
    return ok(check, f"{len(alive)} alive")


def running(seen: Outlook) -> Finding:
    """Judge whether running jobs have a worker that lives."""
    check = "running"
    lost = lost_in(seen.running, seen.workers)
    if not lost:
        return ok(check, "none belongs to a dead worker")
    number = sum(lost.values())
    text = f"{_jobs(number)} to workers that are dead or gone"
    if any(worker.state == "alive" for worker in seen.workers):
        return warning(
            check,
            text,
            "they are given back when their leases have ended; look again in a minute, and if they "
            "are still there, start a worker without --no-coordinator",
        )
    return problem(
        check,
        f"{text}, and no worker is alive to give them back",
        "start a worker without --no-coordinator",
    )


def queues(seen: Outlook) -> Finding:
    """Judge whether somebody serves each queue in which jobs wait."""
    served = {name for worker in seen.alive for name in worker.queues}
    lonely = [q.name for q in seen.queues if q.ready + q.scheduled and q.name not in served]
    if not lonely:
        return ok("queues", "each in which jobs wait is served")
    return warning(
        "queues",
        f"no live worker serves {_named(lonely)}, where jobs wait",
        "start a worker with `--queues`, or without, if its program has types for them",
    )


def types(seen: Outlook) -> Finding:
    """Judge whether somebody knows each type of which jobs are due, in the queue they are in.

    Of a queue that nobody serves at all, `queues` tells.
    """
    known = known_by_queue(seen.alive)
    everywhere = {name for names in known.values() for name in names}
    unknown = sorted({name for name, _ in seen.waiting} - everywhere)
    apart = sorted(
        (name, queue)
        for name, queue in set(seen.waiting)
        if name in everywhere and queue in known and name not in known[queue]
    )
    if not unknown and not apart:
        return ok("types", "each of which jobs are due is known to a live worker of their queue")
    told: list[str] = []
    remedies: list[str] = []
    if unknown:
        told.append(f"no live worker knows {_named(unknown)}, of which jobs are due")
        remedies.append(
            "start a worker whose program has a handler of that name, or cancel the jobs"
        )
    if apart:
        told.append(
            "jobs are due that nobody runs: "
            + _few(
                [f"no live worker that knows `{name}` serves `{queue}`" for name, queue in apart]
            )
        )
        remedies.append("add the queue to the `--queues` of a worker that knows the type")
    return warning("types", "; ".join(told), "; ".join(remedies))


def versions(seen: Outlook) -> Finding:
    """Judge whether the arguments of due jobs fit a live version of their type."""
    if not seen.unfit:
        return ok("versions", "no due job waits for one")
    return warning(
        "versions",
        f"no live version takes the arguments of jobs of {_named(sorted(seen.unfit))}",
        "`lamplighter why ID` says what they have and what is taken; start the release that fits",
    )


def unused(seen: Outlook) -> Finding:
    """Judge whether the queues that live workers serve are those of jobs or types, and no typos.

    The default queue is served by every worker that was not told which.
    """
    used = {DEFAULT_QUEUE, *seen.homes}
    used |= {queue.name for queue in seen.queues if queue.busy or queue.handouts}
    by_queue: dict[str, list[str]] = {}
    for worker in seen.alive:
        for name in worker.queues:
            if name not in used:
                by_queue.setdefault(name, []).append(worker.id)
    if not by_queue:
        return ok("unused", "each queue that a live worker serves has jobs or types")
    named = [
        f"`{queue}` ({f'worker {ids[0]}' if len(ids) == 1 else f'{len(ids)} workers'})"
        for queue, ids in sorted(by_queue.items())
    ]
    guesses = [
        f"for `{queue}`: did you mean `{near[0]}`?"
        for queue in sorted(by_queue)[:MOST_NAMED]
        if (near := difflib.get_close_matches(queue, sorted(used), n=1))
    ]
    return warning(
        "unused",
        f"no published type has as its queue, and no job has come to: {_few(named)}",
        " ".join(["correct `--queues`, unless jobs are submitted with `queue=…`", *guesses]),
    )


def known_by_queue(workers: Iterable[WorkerInfo]) -> dict[str, set[str]]:
    """Return the types that are known where each queue is served."""
    found: dict[str, set[str]] = {}
    for worker in workers:
        for queue in worker.queues:
            found.setdefault(queue, set()).update(worker.types)
    return found


def lost_in(records: Iterable[JobRecord], workers: Sequence[WorkerInfo]) -> Counter[str]:
    """Count running jobs of dead and vanished workers by queue."""
    found: Counter[str] = Counter()
    for record in records:
        if worker_state(record, workers) in {"dead", GONE}:
            found[record.job.queue] += 1
    return found


def _named(names: Sequence[str]) -> str:
    return _few([f"`{name}`" for name in names])


def _few(parts: Sequence[str]) -> str:
    told = ", ".join(parts[:MOST_NAMED])
    more = len(parts) - MOST_NAMED
    return f"{told} and {more} more" if more > 0 else told


def _jobs(number: int) -> str:
    return counted(number, "running job belongs", "running jobs belong")
