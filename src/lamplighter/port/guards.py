"""What every engine refuses in the same words, before anything is asked of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.ids import KEY_SEPARATOR
from lamplighter.model.names import check_words, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.port.schedules import NewSchedule, Run

T = TypeVar("T")


def check_note(by: str, reason: str) -> None:
    """Refuse what cannot stand in an operator's note."""
    check_words("operator's name", by)
    check_words("reason", reason)


def check_owners(schedules: Sequence[NewSchedule]) -> Sequence[NewSchedule]:
    """Return these schedules, if the names of their tenants can stand in their keys."""
    for one in schedules:
        if KEY_SEPARATOR in one.tenant:
            raise InvalidName(
                f"tenant {shown(one.tenant)} contains the control character U+0001",
                hint="use any Unicode text without control characters",
                value=one.tenant,
            )
    return schedules


def check_jobs(tenant: str, schedule_id: str, runs: Sequence[Run]) -> None:
    """Refuse jobs of another tenant than their schedule's: their ends would find no schedule."""
    for run in runs:
        if run.job.tenant != tenant:
            raise InvalidInput(
                f"a job of the schedule {shown(schedule_id)} is of the tenant "
                f"{shown(run.job.tenant)}, and the schedule is of {shown(tenant)}",
                hint="make its jobs for the tenant whose it is",
                value=run.job.tenant,
            )


def bounded(items: Sequence[T], most: int) -> Sequence[T]:
    """Return these items, if one call may carry so many."""
    if len(items) > most:
        raise InvalidInput(
            f"{len(items)} items in one call, the limit is {most}",
            hint=f"split the call into batches of at most {most}",
            value=len(items),
        )
    return items
