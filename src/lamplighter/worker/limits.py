"""Limits of a slot process, as the system knows them.

Memory, files and processes are limited once, before the program is imported; CPU time anew for
each job, because the system counts that of the whole process.
"""

from __future__ import annotations

import math
import os
import resource
import sys
from collections.abc import Mapping

from lamplighter.model.errors import InvalidOption
from lamplighter.model.isolation import Limits

MEGABYTE = 1 << 20

_KINDS: Mapping[str, tuple[str, int]] = {
    "memory_mb": ("RLIMIT_AS", MEGABYTE),
    "cpu_seconds": ("RLIMIT_CPU", 1),
    "open_files": ("RLIMIT_NOFILE", 1),
    "processes": ("RLIMIT_NPROC", 1),
}
"""Which resource of the system each limit is, and in which unit."""


def unsupported(limits: Limits, *, grouped: bool = False) -> list[str]:
    """Say which of these limits do nothing on this machine; a worker tells it and goes on.

    No reason to refuse: the program that is limited in production is tried out elsewhere.
    ``grouped``: a control group limits memory and processes as well.
    """
    given = limits.given()
    missing = [
        f"the limit {name} does nothing here: this system has no {resource_name}"
        for name, (resource_name, _) in _KINDS.items()
        if name in given and not hasattr(resource, resource_name)
    ]
    if "memory_mb" in given and sys.platform == "darwin":
        missing.append("the limit memory_mb does nothing here: macOS does not enforce RLIMIT_AS")
    if "processes" in given and os.geteuid() == 0 and not grouped:
        missing.append(
            "the limit processes does nothing here: the system does not count the processes of "
            "root; run the worker as another user, or in a delegated control group"
        )
    return missing


def check(limits: Limits, *, owner: str = "") -> None:
    """Raise InvalidOption for a limit that is above what the worker itself may use.

    ``owner`` is the job type whose limits they are.
    """
    whose = f" of `{owner}`" if owner else ""
    for name, value in limits.given().items():
        resource_name, unit = _KINDS[name]
        number: int | None = getattr(resource, resource_name, None)
        if number is None:
            continue
        _, hard = resource.getrlimit(number)
        if hard != resource.RLIM_INFINITY and value * unit > hard:
            raise InvalidOption(
                f"the limit {name}={value}{whose} is above the worker's own hard limit, "
                f"{resource_name}={hard // unit}",
                hint=f"lower {name}, or raise the worker's limit, as with `ulimit -H` or in its "
                "service file",
                value=value,
            )


def apply(limits: Limits, *, grouped: bool = False) -> None:
    """Limit this process, but for its CPU time; raises InvalidOption as ``check`` does."""
    check(limits)
    for name, value in limits.given().items():
        resource_name, unit = _KINDS[name]
        if name == "cpu_seconds" or (name == "processes" and grouped):
            continue
        number: int | None = getattr(resource, resource_name, None)
        if number is not None:
            resource.setrlimit(number, (value * unit, value * unit))


def allow_cpu(seconds: int) -> None:
    """Limit this process to so many seconds of CPU time from now on; then it gets SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # Rounded up: the system counts whole seconds, and a job gets no less than it was promised.
    soft = math.ceil(used.ru_utime + used.ru_stime) + seconds
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
