"""Judges a history. Pure functions: each takes what happened and gives what must not have happened.

README.md says in words what each invariant means.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from lamplighter.model.job import TERMINAL
from lamplighter.model.lifecycle import CRASH_BUDGET, TRANSITIONS
from tests.faults.history import Ending, History, Run, Write

OVERLAP_GRACE = 5.0
FAIRNESS_TOLERANCE = 0.10
LEAST_SAMPLE = 50
"""Hand-outs the lightest tenant must have had before a ratio says anything."""

_ENDED = frozenset(state.value for state in TERMINAL)
_MOVES = frozenset(
    (move.source and move.source.value, move.target and move.target.value) for move in TRANSITIONS
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never happen, and did."""

    invariant: str
    job_id: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.job_id}: {self.text}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What exactly one job has to come to. The default is that of a good job."""

    state: str = "succeeded"
    attempt: int = 0
    crashes: int = 0
    losses: int = 0
    reason: str = ""
    """How its reason begins."""
    errors: tuple[str, ...] = ()
    """Each of these stands in its last error."""


GOOD = Budget()


@dataclass(frozen=True, slots=True)
class Rules:
    """What the run promised about its job types and tenants."""

    max_attempts: Mapping[str, int]
    """Attempts per job type."""
    may_die: frozenset[str] = frozenset()
    """Job types whose handlers fail for good, or that are given up rather than run twice."""
    at_most_once: frozenset[str] = frozenset()
    """Job types that must not start a second time."""
    budgets: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    """What single jobs must come to, by their ids."""
    weights: Mapping[str, int] | None = None
    fair_queue: str = "fair"


def check(history: History, rules: Rules) -> dict[str, list[Violation]]:
    """Check everything; gives the violations per invariant."""
    found: dict[str, list[Violation]] = {
        "I1": no_loss(history),
        "I2": exclusive_leases(history),
        "I3": fencing(history),
        "I4": bounded_overlap(history),
        "I6": bounded_attempts(history, rules),
        "I8": never_early(history),
        "I9": state_machine(history),
        "I10": cancels(history),
        "I12": idempotent_submits(history),
        "at most once": second_starts(history, rules),
    }
    if rules.budgets:
        found["I6"] += exact_budgets(history, rules)
        found["neighbours"] = unharmed_neighbours(history, rules)
    if rules.weights is not None:
        found["I17"] = fairness(history.writes, rules.weights, rules.fair_queue)
    return found


# ── nothing is lost ──────────────────────────────────────────────────────────────────────────


def no_loss(history: History) -> list[Violation]:
    """I1: every acknowledged job has exactly one end."""
    found: list[Violation] = []
    acknowledged = {
        call.answered_id for call in history.submissions if call.acknowledged and call.answered_id
    }
    for job_id in sorted(acknowledged):
        ending = history.endings.get(job_id)
        if ending is None:
            found.append(Violation("I1", job_id, "acknowledged, but the store does not have it"))
        elif ending.state not in _ENDED:
            found.append(Violation("I1", job_id, f"still {ending.state} after the run"))
    found += [Violation("I1", job_id, "the store has it twice") for job_id in history.doubled]
    # What nobody was told about may be there or not, but not half way.
    for job_id, ending in history.endings.items():
        if job_id not in acknowledged and ending.state not in _ENDED:
            found.append(Violation("I1", job_id, f"unacknowledged and still {ending.state}"))
    return found


def sound_store(history: History) -> list[Violation]:
    """Store: its indexes agree with its jobs, and with what it has written down."""
    return [Violation("store", "-", text) for text in history.broken]


# ── one holder at a time ─────────────────────────────────────────────────────────────────────


def exclusive_leases(history: History) -> list[Violation]:
    """I2: leases of one job do not overlap in store time, and their numbers grow."""
    found: list[Violation] = []
    for job_id, writes in _by_job(history.writes).items():
        highest = 0
        for write in writes:
            if write.new_state == "running" and write.old_state != "running":
                if write.lease <= highest:
                    text = f"lease {write.lease} was handed out after lease {highest}"
                    found.append(Violation("I2", job_id, text))
                highest = max(highest, write.lease)
            elif write.old_state == write.new_state == "running":
                found += _changed_hands(job_id, write)
            if _taken_too_early(write) and write.worker not in history.dead_workers:
                text = (
                    f"lease {write.old_lease} of living {write.worker} was ended "
                    f"{(write.old_expires_ms or 0) - write.now_ms} ms before its end"
                )
                found.append(Violation("I2", job_id, text))
    return found


def _changed_hands(job_id: str, write: Write) -> list[Violation]:
    if (write.lease, write.nonce) == (write.old_lease, write.old_nonce):
        return []
    return [Violation("I2", job_id, f"lease {write.old_lease} changed hands while it ran")]


def _taken_too_early(write: Write) -> bool:
    """Tell whether a claim was taken from its holder before its lease had ended."""
    left_running = write.old_state == "running" and write.new_state != "running"
    return (
        left_running
        and write.abandoned
        and write.old_expires_ms is not None
        and write.old_expires_ms > write.now_ms
    )


def fencing(history: History) -> list[Violation]:
    """I3: what was written was made under the fence that was current; one end per generation,
    and one more for each retry of a dead job.
    """
    found: list[Violation] = []
    for job_id, writes in _by_job(history.writes).items():
        ends: dict[int, int] = defaultdict(int)
        for write in writes:
            author = write.author
            if author is not None and not _wrote_under(author, write):
                text = (
                    f"made under lease {author.get('lease')} ({author.get('nonce')}), "
                    f"accepted under lease {write.old_lease} ({write.old_nonce})"
                )
                found.append(Violation("I3", job_id, text))
            if write.new_state in _ENDED and write.new_state != write.old_state:
                ends[write.generation] += 1
        for generation, count in ends.items():
            if count > 1 + history.retries[job_id]:
                text = f"ended {count} times in generation {generation}"
                found.append(Violation("I3", job_id, text))
    return found


def _wrote_under(author: Mapping[str, object], write: Write) -> bool:
    if write.old_state != "running" or author.get("lease") != write.old_lease:
        return False
    return author.get("nonce") in {None, write.old_nonce}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two runs of one job at the same time."""

    job_id: str
    seconds: float
    """Time during which both could run: not stopped by a signal."""


def overlaps(history: History) -> list[Overlap]:
    """Give every pair of consecutive runs of a job whose times overlap."""
    found: list[Overlap] = []
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in history.runs:
        runs[run.job_id].append(run)
    for job_id, mine in runs.items():
        for earlier, later in pairwise(sorted(mine, key=lambda run: run.started)):
            end = min(_end(earlier, history), _end(later, history))
            if end > later.started:
                still = _stopped_within(history, earlier.pid, later.started, end)
                found.append(Overlap(job_id, end - later.started - still))
    return found


def bounded_overlap(history: History, grace: float = OVERLAP_GRACE) -> list[Violation]:
    """I4: two runs of a job go on side by side for the grace at most."""
    return [
        Violation("I4", overlap.job_id, f"two runs side by side for {overlap.seconds:.2f} s")
        for overlap in overlaps(history)
        if overlap.seconds > grace
    ]


def _end(run: Run, history: History) -> float:
    return history.end if run.ended is None else run.ended


def _stopped_within(history: History, pid: int, begin: float, end: float) -> float:
    return sum(
        max(0.0, min(pause.ended, end) - max(pause.begun, begin))
        for pause in history.pauses
        if pause.pid == pid
    )


# ── attempts, time, states ───────────────────────────────────────────────────────────────────


def bounded_attempts(history: History, rules: Rules) -> list[Violation]:
    """I6: attempts and crashes stay in their budgets; only failing jobs die."""
    found: list[Violation] = []
    for job_id, ending in history.endings.items():
        limit = rules.max_attempts.get(ending.type, 1)
        if ending.attempt > limit:
            found.append(Violation("I6", job_id, f"{ending.attempt} attempts of {limit}"))
        if ending.crashes > CRASH_BUDGET:
            found.append(Violation("I6", job_id, f"{ending.crashes} crashes"))
        may_die = ending.type in rules.may_die or job_id in rules.budgets
        if ending.state == "dead" and not may_die:
            text = f"a {ending.type} job died without a failure of its own: {ending.reason}"
            found.append(Violation("I6", job_id, text))
    for job_id, writes in _by_job(history.writes).items():
        ended_in: int | None = None
        for write in writes:
            if write.old_state in _ENDED and write.new_state not in _ENDED:
                ended_in = None  # whether it may leave its end is for I9
            if write.new_state == "running" and write.generation == ended_in:
                found.append(Violation("I6", job_id, "handed out after it had ended"))
            if write.new_state in _ENDED:
                ended_in = write.generation
    return found


def exact_budgets(history: History, rules: Rules) -> list[Violation]:
    """I6: a harmful job is charged with all it did, and with nothing more."""
    found: list[Violation] = []
    crashes = Counter(write.job_id for write in history.writes if write.crashed)
    for job_id, budget in rules.budgets.items():
        ending = history.endings.get(job_id)
        if budget == GOOD or ending is None:
            continue
        found += [Violation("I6", job_id, text) for text in _differences(ending, budget)]
        if crashes[job_id] != budget.crashes:
            text = f"{crashes[job_id]} crashes were counted of {ending.type}, not {budget.crashes}"
            found.append(Violation("I6", job_id, text))
    return found


def unharmed_neighbours(history: History, rules: Rules) -> list[Violation]:
    """Neighbours: a good job succeeds and is charged with nothing, whatever runs beside it."""
    found: list[Violation] = []
    for job_id, budget in rules.budgets.items():
        ending = history.endings.get(job_id)
        if budget == GOOD and ending is not None:
            texts = _differences(ending, budget)
            found += [Violation("neighbours", job_id, text) for text in texts]
    return found


def _differences(ending: Ending, budget: Budget) -> list[str]:
    """Say in what a job's end is not as it has to be."""
    is_ = (ending.state, ending.attempt, ending.crashes, ending.losses)
    must = (budget.state, budget.attempt, budget.crashes, budget.losses)
    found: list[str] = []
    if is_ != must:
        found.append(f"{ending.type}: {_counts(*is_)} instead of {_counts(*must)}")
    if not (ending.reason or "").startswith(budget.reason):
        found.append(f"{ending.type}: its reason is {ending.reason!r}, not {budget.reason!r}")
    missing = [text for text in budget.errors if text not in (ending.error or "")]
    if missing:
        found.append(f"{ending.type}: no {missing} in its last error {ending.error!r}")
    return found


def _counts(state: str, attempt: int, crashes: int, losses: int) -> str:
    return f"{state} with {attempt} failed attempts, {crashes} crashes and {losses} losses"


def second_starts(history: History, rules: Rules) -> list[Violation]:
    """At most once: no job of such a type starts a second time."""
    starts = Counter(run.job_id for run in history.runs if run.type in rules.at_most_once)
    return [
        Violation("at most once", job_id, f"started {count} times")
        for job_id, count in starts.items()
        if count > 1
    ]


def never_early(history: History) -> list[Violation]:
    """I8: no hand-out and no run before the job is due, in store time."""
    found = [
        Violation("I8", run.job_id, f"started {run.due_ms - run.started_ms} ms early")
        for run in history.runs
        if run.started_ms < run.due_ms
    ]
    for write in history.writes:
        claimed = write.new_state == "running" and write.old_state == "waiting"
        if claimed and write.claimed_ms is not None and write.claimed_ms < write.due_ms:
            text = f"handed out {write.due_ms - write.claimed_ms} ms early"
            found.append(Violation("I8", write.job_id, text))
    return found


def state_machine(history: History) -> list[Violation]:
    """I9: every change of state is in the table; a replay leaves an end with a new generation, and
    a retry leaves death without one: what a job did outside is not to be done a second time.
    """
    found: list[Violation] = []
    retries = history.retries.copy()
    for write in history.writes:
        move = (write.old_state, write.new_state)
        if write.old_state == write.new_state:
            continue
        if move not in _MOVES:
            found.append(Violation("I9", write.job_id, f"moved from {move[0]} to {move[1]}"))
        elif write.old_state in _ENDED and write.new_state is not None:
            retried = write.old_state == "dead" and retries[write.job_id] > 0
            retries[write.job_id] -= retried
            if write.generation != write.old_generation + (not retried):
                how = "was retried with" if retried else f"left {write.old_state} without"
                found.append(Violation("I9", write.job_id, f"{how} a new generation"))
    return found


def cancels(history: History) -> list[Violation]:
    """I10: what was cancelled stays so; what was asked to stop is cancelled or succeeded."""
    found: list[Violation] = []
    by_job = _by_job(history.writes)
    for call in history.cancels:
        ending = history.endings.get(call.job_id)
        state = ending.state if ending else "gone"
        if call.answer == "done":
            if state != "cancelled":
                found.append(Violation("I10", call.job_id, f"told `cancelled`, but it is {state}"))
            for write in by_job.get(call.job_id, ()):
                if write.new_state == "running" and write.now_ms > call.answered_ms:
                    text = "handed out after it was cancelled"
                    found.append(Violation("I10", call.job_id, text))
        elif call.answer == "requested" and state not in {"cancelled", "succeeded"}:
            found.append(Violation("I10", call.job_id, f"asked to stop, but it is {state}"))
    return found


def idempotent_submits(history: History) -> list[Violation]:
    """I12: all acknowledgements of one key name one job, and the store has one."""
    found: list[Violation] = []
    named: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in history.submissions:
        if call.key is not None and call.answer is not None:
            named[call.tenant, call.key].add(call.answered_id or "")
        if call.answer == "conflict":
            found.append(Violation("I12", call.job_id, f"key {call.key}: the same body conflicts"))
    for (tenant, key), jobs in named.items():
        stored = set(history.keyed.get((tenant, key), ()))
        if len(jobs | stored) > 1:
            text = f"key {key} of {tenant} names {sorted(jobs | stored)}"
            found.append(Violation("I12", min(jobs), text))
    return found


# ── fairness ─────────────────────────────────────────────────────────────────────────────────


def served_while_backlogged(
    writes: Iterable[Write], weights: Mapping[str, int], queue: str
) -> dict[str, int]:
    """Count the hand-outs of a queue per tenant for as long as every tenant had jobs waiting.

    Only jobs that were never handed out count as backlog: one that comes back may be due later. In
    a store of several parts each is looked at alone, and the numbers are added.
    """
    parts: dict[int, list[Write]] = defaultdict(list)
    for write in writes:
        if write.queue == queue and write.tenant in weights:
            parts[write.part].append(write)
    counts = [_served_in_part(mine, weights) for mine in parts.values()]
    return {tenant: sum(count[tenant] for count in counts) for tenant in weights}


def _served_in_part(writes: Iterable[Write], weights: Mapping[str, int]) -> dict[str, int]:
    waiting = dict.fromkeys(weights, 0)
    served = dict.fromkeys(weights, 0)
    for write in writes:
        if write.old_state is None:
            waiting[write.tenant] += 1
        if write.old_state == "waiting" and write.new_state == "running":
            # Before the first hand-out the tenants are still lining up.
            if not all(waiting.values()):
                break
            served[write.tenant] += 1
            waiting[write.tenant] -= write.old_lease == 0
    return served


def fairness(writes: Iterable[Write], weights: Mapping[str, int], queue: str) -> list[Violation]:
    """I17: while all are backlogged, hand-outs divided by weight differ by a tenth at most."""
    served = served_while_backlogged(writes, weights, queue)
    if min(served.values()) < LEAST_SAMPLE:
        return [Violation("I17", queue, f"too few hand-outs to judge: {served}")]
    shares = {tenant: served[tenant] / weight for tenant, weight in weights.items()}
    if max(shares.values()) > min(shares.values()) * (1 + FAIRNESS_TOLERANCE):
        return [Violation("I17", queue, f"served {served} for weights {dict(weights)}")]
    return []


def _by_job(writes: Iterable[Write]) -> dict[str, list[Write]]:
    found: dict[str, list[Write]] = defaultdict(list)
    for write in writes:
        found[write.job_id].append(write)
    return found
