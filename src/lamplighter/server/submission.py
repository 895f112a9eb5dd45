"""From the body of a request to a job: checked as a whole before anything is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from lamplighter import options as option
from lamplighter import payload
from lamplighter.model import ids
from lamplighter.model.errors import InvalidOption, UnknownType
from lamplighter.model.job import NewJob
from lamplighter.model.names import check_name, shown
from lamplighter.model.retry import Retry
from lamplighter.server.auth import Principal
from lamplighter.server.calendars import Instant, Times
from lamplighter.server.errors import Forbidden
from lamplighter.server.service import HttpService


class RetryPolicy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How often and after which pauses, in seconds, a failed job is tried again."""

    max_attempts: int | None = None
    delays: list[float] | None = None
    """The pause before each retry."""
    fixed: float | None = None
    """The same pause always."""
    base: float = 1.0
    factor: float = 2.0
    cap: float = 300.0
    jitter: float = 0.3
    no_retry_on: list[str] = msgspec.field(default_factory=list[str])
    """Names of errors that end the job at once."""

    def to_retry(self) -> Retry:
        """Check it and give the policy."""
        return Retry(**msgspec.structs.asdict(self))


class JobSchedule(Times, kw_only=True, forbid_unknown_fields=True):
    """When a job is to run again and again."""

    id: str | None = None
    """Name of the schedule; without it one is drawn."""


class Submission(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A job to be run."""

    type: str
    """Name of the job type."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Arguments by name, as the type's schema says."""
    delay: float | None = None
    """Seconds from now until it is due."""
    run_at: Instant | None = None
    """When it is due, instead of `delay`; the past means now."""
    schedule: JobSchedule | None = None
    """When it runs again and again, instead of `delay` and `run_at`."""
    queue: str | None = None
    priority: Literal["critical", "high", "normal", "low"] | None = None
    tenant: str | None = None
    """On whose behalf it runs."""
    retry: RetryPolicy | None = None
    timeout: float | None = None
    """Seconds its handler has."""
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    idempotency_key: str | None = None
    """The caller's own name for this submission, like the header `Idempotency-Key`."""


_AS_GIVEN = ("delay", "run_at", "queue", "priority", "tenant", "timeout", "tags", "metadata")


async def new_job(
    service: HttpService,
    principal: Principal,
    given: Submission,
    *,
    scope: str,
    key: str | None = None,
) -> NewJob:
    """Check a submission and make the job of it, without storing it yet."""
    options: dict[str, Any] = {
        name: value for name in _AS_GIVEN if (value := getattr(given, name)) is not None
    }
    if given.retry is not None:
        options["retry"] = given.retry.to_retry()
    if key is not None or given.idempotency_key is not None:
        options["idempotency_key"] = _key(given.idempotency_key, key)
    made = await checked_job(service, principal, given.type, given.arguments, options)
    return _scoped(made, f"{scope} {principal.name}")


async def checked_job(
    service: HttpService,
    principal: Principal,
    type: str,
    arguments: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    secrets: Collection[str] = (),
) -> NewJob:
    """Check type, arguments and options, those of a submission in Python, and make the job.

    ``secrets`` are arguments that are secret already, whatever is known of the type now.
    """
    tenant = _tenant(principal, given.get("tenant"))
    options = option.read({**given, "tenant": tenant}) if given else _no_options(tenant)
    client = service.client
    if type in client.registry:
        known = client.registry.get(type)
        args = known.bind((), arguments)
        options = options.over(
            queue=known.queue, level=known.level, delivery=known.delivery, secrets=known.secrets
        )
        options = _hiding(options, secrets)
    else:
        published = await service.catalog.get(check_name("job type", type))
        if published is None:
            _refuse_unknown(service, type)
        else:
            options = published.filled(options)
        options = _hiding(options, secrets)
        args = payload.encode(arguments, secrets=options.extras.secrets)
        if published is not None:
            published.check(arguments)
    return client.new_job(type, args, options)


def _hiding(options: option.Options, secrets: Collection[str]) -> option.Options:
    if not secrets:
        return options
    all_of_them = tuple(dict.fromkeys((*options.extras.secrets, *secrets)))
    extras = dataclasses.replace(options.extras, secrets=all_of_them)
    return dataclasses.replace(options, extras=extras)


@lru_cache(maxsize=1024)
def _no_options(tenant: str | None) -> option.Options:
    """Return the options of a submission that says nothing, as most do."""
    return option.read({"tenant": tenant})


def _tenant(principal: Principal, given: str | None) -> str | None:
    if principal.tenant is None or given in {None, principal.tenant}:
        return given or principal.tenant
    raise Forbidden(
        f"{shown(principal.name)} may not submit jobs of tenant {shown(given)}",
        hint=f"leave `tenant` out, or give {shown(principal.tenant)}",
        value=given,
    )


def _key(inside: str | None, header: str | None) -> str | None:
    if inside is not None and header is not None and inside != header:
        raise InvalidOption(
            f"the header Idempotency-Key is {shown(header)}, and idempotency_key in the body is "
            f"{shown(inside)}",
            hint="give one of them",
            value=inside,
        )
    return header if inside is None else inside


def _refuse_unknown(service: HttpService, name: str) -> None:
    if not service.settings.http_unknown_types:
        raise UnknownType(
            f"no worker has published the job type {shown(name)}",
            hint="check the name (GET /v1/types lists them), or start a worker that knows it; the "
            "setting `http_unknown_types` = 1 lets unknown types in",
            value=name,
        )


def _scoped(new: NewJob, scope: str) -> NewJob:
    """Keep the keys of routes and principals apart; a key leads to its own shard."""
    if new.key is None:
        return new
    key = dataclasses.replace(new.key, scope=scope)
    shard = ids.shard_of_key(new.tenant, scope, key.key)
    return dataclasses.replace(new, key=key, id=ids.moved(new.id, shard))
