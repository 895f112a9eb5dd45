"""Every error a user can see: what was wrong, why, and what to do about it.

Each class has a stable ``code``; `docs/errors.md` has one heading per code, and a test keeps the
two lists equal.
"""

from __future__ import annotations

from typing import ClassVar


class LamplighterError(Exception):
    """Base of all our errors: the offending value, the cause and the remedy."""

    code: ClassVar[str] = "error"

    def __init__(self, cause: str, *, hint: str, value: object = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint
        self.value = value

    def __str__(self) -> str:
        return f"{self.cause}\n\nhint: {self.hint}" if self.hint else self.cause


def extra_hint(extra: str) -> str:
    """Return how to install what an optional part of the package needs."""
    return f"from a clone of the repository: pip install '.[{extra}]'"


# ── what the caller gave is wrong ────────────────────────────────────────────────────────────


class InvalidInput(LamplighterError, ValueError):
    """A value given by the caller cannot be used; nothing was changed."""

    code = "invalid-input"


class InvalidName(InvalidInput):
    """A queue, type, tenant, tag or key breaks the rules for names."""

    code = "invalid-name"


class InvalidOption(InvalidInput):
    """An option is unknown, contradictory or out of range."""

    code = "invalid-option"


class TooCostly(InvalidOption):
    """A calendar names instants that take too much work to find."""

    code = "too-costly"


class InvalidTime(InvalidInput):
    """A delay, timeout or instant cannot be used (negative, naive, not finite)."""

    code = "invalid-time"


class InvalidPayload(InvalidInput):
    """Arguments or metadata are not plain JSON data."""

    code = "invalid-payload"


class PayloadTooLarge(InvalidInput):
    """Arguments or metadata are larger than the inline limit."""

    code = "payload-too-large"


class InvalidArguments(InvalidInput, TypeError):
    """The arguments do not fit the handler's signature."""

    code = "invalid-arguments"


class InvalidHandler(InvalidInput, TypeError):
    """A function cannot be a job handler as it is written."""

    code = "invalid-handler"


class InvalidUrl(InvalidInput):
    """The address of the store cannot be understood."""

    code = "invalid-url"


class InvalidSettings(InvalidInput):
    """A setting in the file, the environment or an argument cannot be used."""

    code = "invalid-settings"


class InvalidApp(InvalidInput):
    """`module:app` does not lead to an App."""

    code = "invalid-app"


class ProviderFailed(LamplighterError):
    """A provider raised when it was opened, so its process cannot start."""

    code = "provider-failed"


class SyncInsideLoop(LamplighterError, RuntimeError):
    """A ``*_sync`` call was made from inside a running event loop."""

    code = "sync-inside-loop"


# ── the state of the store forbids it ────────────────────────────────────────────────────────


class KeyConflict(LamplighterError):
    """The idempotency key was used before with another body."""

    code = "key-conflict"


class WrongState(LamplighterError):
    """The job is in a state in which this cannot be done."""

    code = "wrong-state"


class UnknownJob(LamplighterError, LookupError):
    """No job with this id is in the store."""

    code = "unknown-job"


class UnknownSchedule(LamplighterError, LookupError):
    """No schedule with this id is in the store."""

    code = "unknown-schedule"


class UnknownToken(LamplighterError, LookupError):
    """No token with this prefix is in the store."""

    code = "unknown-token"


class UnknownType(LamplighterError, LookupError):
    """No job type of this name is known here."""

    code = "unknown-type"


# ── waiting for a result ─────────────────────────────────────────────────────────────────────


class ResultTimeout(LamplighterError, TimeoutError):
    """The job did not finish within the time one was willing to wait."""

    code = "result-timeout"


class ResultOmitted(LamplighterError, LookupError):
    """The job succeeded, but what it returned could not be kept."""

    code = "result-omitted"


class JobFailed(LamplighterError):
    """The job whose result was asked for ended without succeeding."""

    code = "job-failed"


# ── the store ────────────────────────────────────────────────────────────────────────────────


class StoreError(LamplighterError):
    """The store could not do what was asked."""

    code = "store-error"


class StoreUnreachable(StoreError):
    """The store cannot be opened or reached."""

    code = "store-unreachable"


class StoreBusy(StoreError):
    """Another process held the store for longer than the deadline."""

    code = "store-busy"


class StoreReadOnly(StoreError):
    """The store can be read but not written."""

    code = "store-read-only"


class StoreForbidden(StoreError):
    """The database user lacks a right."""

    code = "store-forbidden"


class StoreFull(StoreError):
    """The disk or the memory under the store is full."""

    code = "store-full"
    retry_after: float | None = None
    """Seconds after which to try again, where that is known."""


class StoreForeign(StoreError):
    """The database belongs to something else."""

    code = "store-foreign"


class StoreAliased(StoreError):
    """The database file has more than one name, or is mounted without its folder."""

    code = "store-aliased"


class StoreLost(StoreError):
    """The store that was opened is gone: its server has lost its data."""

    code = "store-lost"


class StoreNewer(StoreError):
    """The store was written by a newer version."""

    code = "store-newer"


class StoreOlder(StoreError):
    """The store has to be migrated first."""

    code = "store-older"


class StoreDamaged(StoreError):
    """The database file is damaged."""

    code = "store-damaged"


class StoreClosed(StoreError):
    """The engine was closed, or not opened yet."""

    code = "store-closed"


def every_error() -> list[type[LamplighterError]]:
    """All classes of this module, base first."""
    found: list[type[LamplighterError]] = [LamplighterError]
    for cls in found:
        found.extend(
            sub for sub in cls.__subclasses__() if sub not in found and sub.__module__ == __name__
        )
    return found
