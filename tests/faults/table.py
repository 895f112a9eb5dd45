"""Judges what became of schedules by the table of policies, from the contract alone.

A coordinator notes what it was handed out before it plans: the cursor, and the store's now. Plans
are made of these two and the policy, so that everything the store may have written follows from
the notes; of several notes of one cursor, one plan counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate

from lamplighter.model.filters import Filter
from lamplighter.model.job import JobRecord
from lamplighter.model.recurring import CatchUp, Overlap
from lamplighter.port.schedules import RunRecord, RunState, ScheduleFilter, ScheduleRecord
from lamplighter.port.store import Engine
from tests.faults.checker import Violation
from tests.faults.history import History
from tests.faults.rota import TYPE, Duty

ON_TIME_MS = 30_000
"""Later than this is too late where nothing is made up for."""
AT_ONCE = 100
"""Runs in one plan; and as many skipped ones are counted."""
PAGE = 500
UNTIMELY = ("late", "missed")
_QUEUE = frozenset({RunState.QUEUED})
_STARTED = frozenset({RunState.STARTED})
_REPLACEABLE = frozenset({RunState.STARTED, RunState.QUEUED, RunState.CANCELLED, RunState.SKIPPED})

Looks = Mapping[str, Mapping[int, set[int]]]
"""For each schedule and cursor: the times at which it was handed out."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One row that a plan has to leave."""

    due_ms: int
    states: frozenset[RunState] = _STARTED
    reason: str | None = None
    first_ms: int | None = None
    count: int | None = 1

    def fits(self, run: RunRecord) -> bool:
        if run.due_ms != self.due_ms or run.state not in self.states:
            return False
        if self.reason in UNTIMELY:
            first = run.due_ms if run.first_ms is None else run.first_ms
            if (first, run.count) != (self.first_ms, self.count):
                return False
        if self.reason is not None:
            return run.reason == self.reason and run.job_id is None
        replaced = "replaced" if run.state is RunState.SKIPPED else None
        return run.reason == replaced and run.job_id is not None


@dataclass(slots=True)
class Findings:
    """What a store has of its schedules at the end of a run."""

    records: dict[str, ScheduleRecord] = field(default_factory=dict[str, ScheduleRecord])
    runs: dict[str, list[RunRecord]] = field(default_factory=dict[str, list[RunRecord]])
    jobs: dict[str, list[JobRecord]] = field(default_factory=dict[str, list[JobRecord]])

    def skips(self) -> Counter[str]:
        """Count skipped occurrences by their reason; very many count as one."""
        found: Counter[str] = Counter()
        for run in self.all_runs():
            if run.state is RunState.SKIPPED:
                found[run.reason or "-"] += run.count or 1
        return found

    def all_runs(self) -> Iterable[RunRecord]:
        return (run for runs in self.runs.values() for run in runs)


async def at_rest(engine: Engine) -> bool:
    """Tell whether all schedules have ended, and nothing waits for its turn to replace another."""
    records = await _records(engine)
    if any(one.due_ms is not None for one in records.values()):
        return False
    for one in records.values():
        if Overlap.CANCEL_RUNNING.value in one.spec:
            last = await engine.schedules.runs(one.id, limit=1)
            if any(run.state is RunState.QUEUED for run in last.runs):
                return False
    return True


async def read(engine: Engine) -> Findings:
    """Read all schedules, their runs in the order of their due times, and all jobs."""
    found = Findings(records=await _records(engine))
    cursor: str | None = None
    for name in found.records:
        found.runs[name] = await _runs(engine, name)
    while True:
        jobs = await engine.inspector.jobs(Filter(types=(TYPE,)), limit=PAGE, cursor=cursor)
        for job in jobs.jobs:
            found.jobs.setdefault(job.job.schedule or "-", []).append(job)
        cursor = jobs.cursor
        if cursor is None:
            return found


async def _records(engine: Engine) -> dict[str, ScheduleRecord]:
    records: dict[str, ScheduleRecord] = {}
    cursor: str | None = None
    while True:
        page = await engine.schedules.schedules(ScheduleFilter(), limit=PAGE, cursor=cursor)
        records |= {one.id: one for one in page.schedules}
        cursor = page.cursor
        if cursor is None:
            return records


async def _runs(engine: Engine, name: str) -> list[RunRecord]:
    runs: list[RunRecord] = []
    cursor: str | None = None
    while True:
        page = await engine.schedules.runs(name, limit=PAGE, cursor=cursor)
        runs += page.runs
        cursor = page.cursor
        if cursor is None:
            return sorted(runs, key=lambda run: run.due_ms)


def looks_of(lines: Iterable[Mapping[str, object]]) -> Looks:
    """Collect from a journal what coordinators were handed out."""
    looks: defaultdict[str, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for line in lines:
        if line["kind"] == "look":
            for name, cursor in line["due"]:  # type: ignore[attr-defined]
                looks[name][cursor].add(line["store"])  # type: ignore[arg-type]
    return looks


# ── judge ────────────────────────────────────────────────────────────────────────────────────


def judge(duties: Sequence[Duty], found: Findings, looks: Looks) -> list[Violation]:
    """Judge every schedule, each occurrence up to its cursor."""
    said: list[Violation] = []
    for duty in duties:
        record = found.records.get(duty.id)
        if record is None:
            said.append(Violation("table", duty.id, "the schedule is gone"))
            continue
        runs, jobs = found.runs[duty.id], found.jobs.get(duty.id, [])
        said += _all_once(duty, record, jobs)
        said += _by_the_table(duty, record, runs, looks.get(duty.id, {}))
        said += _sums(record, runs, jobs)
        said += _last_is_left(duty, runs)
    known = {duty.id for duty in duties}
    for name in found.jobs.keys() - known:
        said.append(Violation("occurrence", name, "jobs of a schedule that nobody has put"))
    return said


def created_once(history: History) -> list[Violation]:
    """Judge the store's own notes: no job was made a second time, not even after it was gone."""
    made = Counter(write.job_id for write in history.writes if write.old_state is None)
    return [
        Violation("occurrence", job_id, f"the job was made {times} times")
        for job_id, times in made.items()
        if times > 1
    ]


def _all_once(duty: Duty, record: ScheduleRecord, jobs: Sequence[JobRecord]) -> list[Violation]:
    """Where all is made up for and nothing stands in the way: each occurrence has one job."""
    policy = duty.policy
    if policy.catch_up is not CatchUp.ALL or policy.overlap is not Overlap.ALLOW:
        return []
    if policy.window_ms < record.cursor_ms - record.created_at_ms:
        return []  # some of it may be too late
    there = Counter(_instant(job) for job in jobs)
    due = Counter(duty.between(record.created_at_ms, record.cursor_ms))
    said = [Violation("occurrence", duty.id, f"lost: {at}") for at in sorted(due - there)]
    return said + [
        Violation("occurrence", duty.id, f"too much: {at}") for at in sorted(there - due)
    ]


def _instant(job: JobRecord) -> int:
    """Tell for which occurrence a job was made, as its handler would be told."""
    at = datetime.fromisoformat(job.job.extras.metadata["scheduled_for"])
    return round(at.timestamp() * 1000)


def _by_the_table(
    duty: Duty, record: ScheduleRecord, runs: Sequence[RunRecord], looks: Mapping[int, set[int]]
) -> list[Violation]:
    """Go from one plan to the next; each has to be one that could be made from some look."""
    cursors = [record.created_at_ms, *(run.due_ms for run in runs)]
    before = [0, *accumulate(run.reason not in UNTIMELY for run in runs)]
    reached = {0}
    for place in range(len(runs)):
        if place not in reached:
            continue
        for now_ms in looks.get(cursors[place], ()):
            wanted = expected(duty, cursors[place], now_ms, before[place])
            some = runs[place : place + len(wanted)]
            fitting = len(some) == len(wanted) and all(
                one.fits(run) for one, run in zip(wanted, some, strict=True)
            )
            if wanted and fitting and len({run.at_ms for run in some}) == 1:
                reached.add(place + len(wanted))
    if len(runs) not in reached:
        place = max(reached)
        tried = sorted(looks.get(cursors[place], ()))
        text = f"after {cursors[place]} no plan leaves {_shown(runs[place : place + 2])}, looks at"
        return [Violation("table", duty.id, f"{text} {tried[:5]}")]
    if record.cursor_ms != cursors[-1]:
        text = f"the cursor is at {record.cursor_ms}, the last run at {cursors[-1]}"
        return [Violation("table", duty.id, text)]
    return []


def expected(duty: Duty, cursor_ms: int, now_ms: int, before: int) -> list[Wanted]:
    """Give the rows of a plan; ``before`` is how many occurrences were chosen earlier."""
    policy, until = duty.policy, now_ms - duty.offset_ms
    if duty.count(cursor_ms, until) == 0:
        return []
    window = policy.window_ms
    if policy.catch_up is CatchUp.NONE:
        window = min(window, ON_TIME_MS)
    last = duty.last_until(until)
    if policy.catch_up is CatchUp.ALL:
        chosen = duty.between(max(cursor_ms, until - window - 1), until)[:AT_ONCE]
        skips = _skipped(duty, cursor_ms, chosen[0] - 1 if chosen else last, "late")
    elif last >= until - window:
        chosen = [last]
        skips = _skipped(duty, cursor_ms, last - 1, "missed")
    else:
        chosen = []
        skips = _skipped(duty, cursor_ms, last, "late")
    fates = [_fate(policy.overlap, before + n) for n in range(len(chosen))]
    return skips + [
        Wanted(at, states, reason) for at, (states, reason) in zip(chosen, fates, strict=True)
    ]


def _skipped(duty: Duty, cursor_ms: int, until_ms: int, reason: str) -> list[Wanted]:
    count = duty.count(cursor_ms, until_ms)
    if count == 0:
        return []
    return [
        Wanted(
            duty.last_until(until_ms),
            frozenset({RunState.SKIPPED}),
            reason,
            duty.first_after(cursor_ms),
            count if count <= AT_ONCE else None,
        )
    ]


def _fate(overlap: Overlap, before: int) -> tuple[frozenset[RunState], str | None]:
    """Tell what becomes of a chosen occurrence where no job ever ends by itself."""
    skipped = frozenset({RunState.SKIPPED})
    match overlap:
        case Overlap.SKIP if before > 0:
            return skipped, "overlap"
        case Overlap.QUEUE_ONE if before > 1:
            return skipped, "queue_full"
        case Overlap.QUEUE_ONE | Overlap.QUEUE_ALL if before > 0:
            return _QUEUE, None
        case Overlap.CANCEL_RUNNING:
            return _REPLACEABLE, None
        case _:
            return _STARTED, None


def _sums(
    record: ScheduleRecord, runs: Sequence[RunRecord], jobs: Sequence[JobRecord]
) -> list[Violation]:
    """What is counted is what is there, and each job has its run."""
    with_job = sorted(run.job_id for run in runs if run.job_id is not None)
    skipped = sum(run.count or 1 for run in runs if run.state is RunState.SKIPPED)
    said: list[str] = []
    if record.fired != len(with_job):
        said.append(f"{record.fired} fired as counted, {len(with_job)} runs with a job")
    if record.skipped != skipped:
        said.append(f"{record.skipped} skipped as counted, {skipped} by its runs")
    if with_job != sorted(job.job.id for job in jobs):
        said.append(f"{len(jobs)} jobs, and not those that its {len(with_job)} runs name")
    return [Violation("table", record.id, text) for text in said]


def _last_is_left(duty: Duty, runs: Sequence[RunRecord]) -> list[Violation]:
    """Where each run replaces the one before, the last one is left and no other."""
    chosen = [run for run in runs if run.reason not in UNTIMELY]
    if duty.policy.overlap is not Overlap.CANCEL_RUNNING or not chosen:
        return []
    *earlier, last = chosen
    going = [run for run in earlier if run.state in {RunState.STARTED, RunState.QUEUED}]
    if last.state is RunState.STARTED and not going:
        return []
    return [Violation("table", duty.id, f"not replaced: {_shown([*going[:2], last])}")]


def _shown(runs: Sequence[RunRecord]) -> str:
    return ", ".join(
        f"{run.due_ms} {run.state} {run.reason or ''} ({run.first_ms}, {run.count}) at {run.at_ms}"
        for run in runs
    )
