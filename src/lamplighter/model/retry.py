"""When to try again. A policy is a value; the only dice it uses are handed in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown

DEFAULT_MAX_ATTEMPTS = 5
LONGEST_DELAY = 366 * 86_400.0

_STORED = frozenset(
    {"max_attempts", "delays", "fixed", "base", "factor", "cap", "jitter", "no_retry_on"},
)

RetryFunction = Callable[[int], float]
"""Gets the number of the failed attempt (1, 2, …), gives the delay in seconds."""


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How often and after which delays a failed job is tried again.

    ``Retry()`` is exponential: 1 s doubling to 300 s, up to 30 % of jitter, 5 attempts.
    ``Retry(delays=[60, 300, 1800])`` names each delay, and so four attempts.
    ``Retry(fixed=10)`` waits the same time always. ``Retry(function=f)`` asks ``f(attempt)``.
    ``no_retry_on`` names errors, by class or by name, that end the job at once.
    """

    max_attempts: int
    """Attempts in all, the first included; 1: never retry."""
    delays: tuple[float, ...] | None
    """Seconds before each retry, in order; None: not named one by one."""
    fixed: float | None
    """Seconds before every retry; None: they grow."""
    base: float
    """Seconds before the first retry of those that grow."""
    factor: float
    """By how much each delay is longer than the one before."""
    cap: float
    """Longest delay in seconds, before jitter."""
    jitter: float
    """Up to this part of the delay is added by chance: 0.3 is 30 %."""
    no_retry_on: tuple[str, ...]
    """Names of exceptions, of a class or a base, that end the job at once."""
    function: RetryFunction | None
    """Returns the delay after each failed attempt; only on job types. None: there is none."""

    def __init__(
        self,
        *,
        max_attempts: int | None = None,
        delays: Sequence[float] | None = None,
        fixed: float | None = None,
        base: float = 1.0,
        factor: float = 2.0,
        cap: float = 300.0,
        jitter: float = 0.3,
        no_retry_on: Iterable[type[BaseException] | str] = (),
        function: RetryFunction | None = None,
    ) -> None:
        if sum(choice is not None for choice in (delays, fixed, function)) > 1:
            raise InvalidOption(
                "a retry policy was given more than one of delays, fixed and function",
                hint="choose one of the three",
            )
        if delays is not None and (isinstance(delays, str) or not isinstance(delays, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidOption(
                f"delays is {shown(delays)}, which is not a list",
                hint="give the delay before each retry in seconds, as in [60, 300, 1800]",
                value=delays,
            )
        steps = None if delays is None else tuple(_seconds("delays", d) for d in delays)
        if max_attempts is None:
            max_attempts = DEFAULT_MAX_ATTEMPTS if steps is None else len(steps) + 1
        if type(max_attempts) is not int or max_attempts < 1:
            raise InvalidOption(
                f"max_attempts is {shown(max_attempts)}",
                hint="give a whole number of 1 or more; 1 means: never retry",
                value=max_attempts,
            )
        if steps is not None and max_attempts > len(steps) + 1:
            raise InvalidOption(
                f"max_attempts is {max_attempts}, but delays names only "
                f"{counted(len(steps), 'retry', 'retries')}",
                hint="leave max_attempts out, or name a delay for each retry",
                value=max_attempts,
            )
        values: dict[str, object] = {
            "max_attempts": max_attempts,
            "delays": steps,
            "fixed": None if fixed is None else _seconds("fixed", fixed),
            "base": _seconds("base", base),
            "factor": _at_least_one("factor", factor),
            "cap": _seconds("cap", cap),
            "jitter": _seconds("jitter", jitter),
            "no_retry_on": _error_names(no_retry_on),
            "function": function,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def delay_after(self, attempt: int, kinds: Sequence[str], chance: float) -> float | None:
        """Seconds to wait after failed attempt number ``attempt``, or None for: no more.

        ``kinds`` are the names of the error's class and bases. ``chance`` in [0, 1) is the dice.
        """
        if attempt >= self.max_attempts or not set(self.no_retry_on).isdisjoint(kinds):
            return None
        if self.delays is not None:
            return self.delays[attempt - 1]
        if self.fixed is not None:
            return self.fixed
        if self.function is not None:
            return min(
                _seconds("the retry function's answer", self.function(attempt)), LONGEST_DELAY
            )
        # The exponent is bounded so that a huge attempt number cannot overflow a float.
        plain = min(self.cap, self.base * self.factor ** min(attempt - 1, 64))
        return plain * (1.0 + self.jitter * chance)

    def to_json(self) -> str:
        """Text form for the store; a function cannot be stored."""
        if self.function is not None:
            raise InvalidOption(
                "a retry function cannot travel with a single submission",
                hint="put Retry(function=…) on the job type, or use delays, fixed or exponential",
            )
        return json.dumps(
            {
                "max_attempts": self.max_attempts,
                "delays": self.delays,
                "fixed": self.fixed,
                "base": self.base,
                "factor": self.factor,
                "cap": self.cap,
                "jitter": self.jitter,
                "no_retry_on": self.no_retry_on,
            },
        )

    @classmethod
    def from_json(cls, text: str) -> Retry:
        """Read what ``to_json`` wrote; what a newer version added is left out."""
        stored = cast("dict[str, object]", json.loads(text))
        known = {name: value for name, value in stored.items() if name in _STORED}
        return cls(**known)  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Retry:
        """Build a policy from plain data, as the CLI and the API receive it."""
        for name in options:
            if name not in _STORED:
                raise InvalidOption(
                    f"unknown retry option {shown(name)}",
                    hint=f"use {', '.join(sorted(_STORED))}",
                    value=name,
                )
        return cls(**dict(options))  # pyright: ignore[reportArgumentType]


def abandoned_delay(times: int, chance: float) -> float:
    """Delay before a job whose worker vanished is tried again: up to 1 s, doubling to 300 s.

    Half of it is dice: jobs that died together must not come back together, or one that kills
    its process takes the same neighbours with it each time.
    """
    return min(300.0, 2.0 ** min(times, 16)) * (0.5 + 0.5 * chance)


def _seconds(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidOption(
            f"{what} contains {shown(value)}, which is not a number of seconds",
            hint="give seconds as a finite number of 0 or more",
            value=value,
        )
    if value < 0 or value > LONGEST_DELAY:
        raise InvalidOption(
            f"{what} contains {value}, which is out of range",
            hint=f"give seconds between 0 and {LONGEST_DELAY:.0f}",
            value=value,
        )
    return float(value)


def _at_least_one(what: str, value: float) -> float:
    number = _seconds(what, value)
    if number < 1:
        raise InvalidOption(f"{what} is {value}", hint=f"give a {what} of 1 or more", value=value)
    return number


def _error_names(errors: Iterable[type[BaseException] | str]) -> tuple[str, ...]:
    # A text is a list too, of its letters, and no error is called like one.
    listed = hasattr(errors, "__iter__") and not isinstance(errors, str)
    names = [_error_name(error) for error in errors] if listed else [None]
    if None in names:
        raise InvalidOption(
            f"no_retry_on is {shown(errors)}, which is no list of errors",
            hint='name them, as in ["CardDeclined"], or give their classes',
            value=errors,
        )
    return tuple(name for name in names if name is not None)


def _error_name(error: object) -> str | None:
    if isinstance(error, type):
        return error.__name__
    return error if isinstance(error, str) else None
