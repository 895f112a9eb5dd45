"""Jobs, claims and attempts, to and from their packed values: see `layout.py`.

Ids are not in a value: they are its key.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache

from lamplighter.engines.redis import inputs
from lamplighter.engines.redis.layout import ATTEMPT, JOB, RUN
from lamplighter.model.job import (
    NO_EXTRAS,
    Attempt,
    Claim,
    Delivery,
    Fence,
    Job,
    JobRecord,
    Level,
    NewJob,
)
from lamplighter.port import rows, texts

Lane = tuple[str, Level, str, str]
"""Queue, level, type, requirement."""

SUSPECT, AT_MOST_ONCE, RESULT, REASON, NOTE, SCHEDULE, HELD = JOB.flags.values()

# A new job: its script writes the head, the rest up to the sizes of its texts is zero but for the
# cost, and so are the sizes of texts that it gets when it ends.
_COST = JOB.struct("cost")
_NOTHING_YET = bytes(JOB.at("tenant") - JOB.at("generation"))
_NEW = _COST.pack(1) + _NOTHING_YET
_SIZES = JOB.struct("tenant", "args", "extras", "schedule")
_NO_END = bytes(JOB.size - JOB.at("error"))
_TEXTS = JOB.size

_SEEN = JOB.reader(
    *("flags", "due", "created", "cost", "generation", "attempt", "crashes", "losses"),
    *("tenant", "args", "extras", "schedule"),
)
"""What a worker sees."""
_STORY = JOB.reader(
    *("state", "flags", "finished", "lease", "claimed", "handout", "nonce"), *JOB.texts
)
"""What became of it."""
_LEASE = JOB.reader("lease")
_RUN = RUN.struct(*RUN.fields)
_ATTEMPT = ATTEMPT.struct(*ATTEMPT.fields)
_NO_NONCE = bytes(16)

_LEVELS = {level.value: level for level in Level}
_AT_LEAST_ONCE = Delivery.AT_LEAST_ONCE
_STATES = {
    b"W": "waiting",
    b"B": "blocked",
    b"S": "succeeded",
    b"D": "dead",
    b"C": "cancelled",
    b"E": "expired",
}


# ── to the store ─────────────────────────────────────────────────────────────────────────────


def body_of(job: NewJob, occurrence: bytes = b"") -> bytes:
    """Pack a new job, all but the head that its script puts before it.

    ``occurrence`` is given for one that its schedule makes: see `occurrence_of`.
    """
    tenant, args = job.tenant.encode(), job.args
    if 0 in tenant or len(tenant) > inputs.LONGEST_TENANT:
        raise inputs.bad_tenant(job.tenant, len(tenant))
    numbers = _NEW if job.cost == 1 else _COST.pack(job.cost) + _NOTHING_YET
    if job.extras is NO_EXTRAS and job.schedule is None and not occurrence:
        sizes = _SIZES.pack(len(tenant), len(args), 0, 0)
        return b"%b%b%b%b%b" % (numbers, sizes, _NO_END, tenant, args)
    extras = (texts.extras_to_text(job.extras) or "").encode()
    schedule = occurrence or (job.schedule or "").encode()
    if not occurrence and 0 in schedule:
        raise inputs.with_nul(job.schedule or "")
    sizes = _SIZES.pack(len(tenant), len(args), len(extras), len(schedule))
    return b"".join((numbers, sizes, _NO_END, tenant, args, extras, schedule))


def occurrence_of(schedule_id: str, due_ms: int) -> bytes:
    """Return what stands in a job for its schedule and what it was made for.

    `lua/lib/occurrence.lua` reads it, and a script may put another instant in its place.
    """
    return f"{schedule_id}\0{due_ms:016d}".encode()


def flags_of(job: NewJob) -> int:
    """Return the flags of a new job, which stand in its head."""
    return (
        (0 if job.delivery is _AT_LEAST_ONCE else AT_MOST_ONCE)
        + (0 if job.schedule is None else SCHEDULE)
        + (HELD if job.held else 0)
    )


def lane_text(job: NewJob) -> bytes:
    """Write the lane of a job as the store names it."""
    text = f"{job.queue}\0{int(job.level)}\0{job.type}\0{job.requirement}"
    if text.count("\0") > 3:
        raise inputs.with_nul(f"{job.queue} {job.type} {job.requirement}")
    return text.encode()


def mark_to_text(by: str, reason: str) -> str:
    """Write who did something and why; the script adds when: `mark_at` in `lua/lib/mark.lua`."""
    return json.dumps({"by": texts.clean(by), "reason": texts.clean(reason)})


# ── from the store ───────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def lane_of(text: bytes) -> Lane:
    """Read a lane; what follows the requirement (its band) is left out."""
    queue, level, type_, requirement, *_ = text.decode().split("\0")
    return queue, _LEVELS[int(level)], type_, requirement


def job_of(job_id: str, value: bytes, lane: Lane) -> Job:
    """Read the job a worker sees."""
    (
        flags, due, created, cost, generation, attempt, crashes, losses,
        tenant, args, extras, schedule,
    ) = _SEEN.unpack_from(value)  # fmt: skip
    args_at = _TEXTS + tenant
    extras_at = args_at + args
    schedule_at = extras_at + extras
    return Job(
        id=job_id,
        type=lane[2],
        args=value[args_at:extras_at],
        queue=lane[0],
        level=lane[1],
        tenant=value[_TEXTS:args_at].decode(),
        due_at_ms=due,
        created_at_ms=created,
        delivery=Delivery.AT_MOST_ONCE if flags & AT_MOST_ONCE else _AT_LEAST_ONCE,
        extras=texts.extras_of(value[extras_at:schedule_at].decode()) if extras else NO_EXTRAS,
        attempt=attempt,
        crashes=crashes,
        losses=losses,
        suspect=flags & SUSPECT != 0,
        generation=generation,
        cost=cost,
        schedule=_schedule_of(value, schedule_at, schedule) if flags & SCHEDULE else None,
    )


def _schedule_of(value: bytes, at: int, size: int) -> str:
    """Read the name of a schedule; the occurrence may stand behind it."""
    return value[at : at + size].partition(b"\0")[0].decode()


def claim_of(job_id: str, value: bytes, lane: Lane, run: bytes) -> Claim:
    """Read a running claim: ``run`` is what stands beside the job while it runs."""
    lease, _, handout, nonce, _, started = _RUN.unpack_from(run)
    return Claim(
        job=job_of(job_id, value, lane),
        fence=Fence(lease, nonce.decode()),
        worker=run[_RUN.size :].decode(),
        handout=handout,
        started=started == 1,
    )


def holder_of(run: bytes) -> str:
    """Return the worker whose process holds a running claim."""
    return run[_RUN.size :].decode().partition("/")[0]


def last_lease(value: bytes) -> int:
    """Return the number of the last claim that was written down; a running one is not."""
    return _LEASE.unpack_from(value)[0]


def record_of(
    job_id: str,
    value: bytes,
    lane: Lane,
    *,
    now: int,
    run: bytes | None = None,
    expires: int | None = None,
    hold: bytes | None = None,
    cancel: bytes | None = None,
    progress: bytes | None = None,
    unstarted: Collection[str] = (),
) -> JobRecord:
    """Read everything the store knows of a job; the marks and the claim are kept beside it.

    ``unstarted`` has what its worker said last of the jobs whose handlers were not called.
    """
    letter, flags, finished, lease, claimed, handout, nonce, *sizes = _STORY.unpack_from(value)
    place = _TEXTS
    texts_of: list[bytes] = []
    for size in sizes:
        texts_of.append(value[place : place + size])
        place += size
    error, worker, reason, result, note = texts_of[4:]
    state, started = _STATES[letter], 1
    if run is not None:
        lease, claimed, handout, nonce, _, started = _RUN.unpack_from(run)
        worker, state = run[_RUN.size :], "running"
        if not flags & AT_MOST_ONCE:
            started = job_id not in unstarted
    return rows.record_of(
        job_of(job_id, value, lane),
        (
            lease,
            None if nonce == _NO_NONCE else nonce.decode(),
            _text(worker or None),
            handout or None,
        ),
        (
            state,
            _text(hold),
            _text(cancel),
            claimed or None,
            expires if run is not None else None,
            finished or None,
            reason.decode() if flags & REASON else None,
            result if flags & RESULT else None,
            note.decode() if flags & NOTE else None,
            _text(error or None),
            _text(progress),
            started,
        ),
        now,
    )


def attempt_of(job_id: str, value: bytes) -> Attempt:
    """Read one entry of a job's history."""
    generation, lease, number, started, finished, nonce, worker, outcome, _ = _ATTEMPT.unpack_from(
        value
    )
    worker_at = _ATTEMPT.size
    outcome_at = worker_at + worker
    error_at = outcome_at + outcome
    return rows.attempt_of(
        (
            job_id,
            generation,
            lease,
            number,
            value[worker_at:outcome_at].decode(),
            value[outcome_at:error_at].decode(),
            started,
            finished or None,
            _text(value[error_at:] or None),
            nonce.decode(),
        )
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
