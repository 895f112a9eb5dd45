"""New jobs as arguments of a script; `lua/lib/arrivals.lua` is the other side."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from struct import Struct
from sys import byteorder

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument
from lamplighter.model.job import NewJob

SUBMITTED_HELD = records.mark_to_text("submit", "submitted held")
_COUNTS = Struct("<HHH")


def arguments_of(
    jobs: Sequence[NewJob],
    bodies: Sequence[bytes],
    flags: bytes,
    keys: Sequence[Argument] = (),
    mark: str = SUBMITTED_HELD,
) -> list[Argument]:
    """Pack jobs, each with its body and its flags, and their idempotency keys.

    ``mark`` says why some of them are held.
    """
    lanes: dict[tuple[str, int, str, str], int] = {}
    names: list[bytes] = []
    turns: dict[tuple[int, str], int] = {}
    of_jobs = array("H")
    for job in jobs:
        lane = (job.queue, job.level, job.type, job.requirement)
        number = lanes.get(lane)
        if number is None:
            number = lanes[lane] = len(lanes) + 1
            names.append(records.lane_text(job))
        of_jobs.append(turns.setdefault((number, job.tenant), len(turns) + 1))
    return [
        "".join([job.id for job in jobs]),
        _little(of_jobs) if len(turns) > 1 else b"",
        _dues(jobs),
        flags if any(flags) else b"",
        mark,
        _COUNTS.pack(len(lanes), len(turns), len(keys) // 4),
        *names,
        *chain.from_iterable(turns),
        *bodies,
        *keys,
    ]


def _dues(jobs: Sequence[NewJob]) -> bytes:
    """Return when each is due: a delay, or minus an instant; nothing if all are due now."""
    dues = array(
        "q",
        [
            max(0, job.delay_ms) if job.run_at_ms is None else min(-1, -job.run_at_ms)
            for job in jobs
        ],
    )
    return _little(dues) if any(dues) else b""


def _little(numbers: array[int]) -> bytes:
    if byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
