"""One frozen Settings: file < environment < argument.

The file is `lamplighter.toml` in the working folder, or what LAMPLIGHTER_CONFIG names. Each field
is also LAMPLIGHTER_<FIELD>; what is secret, as the url may be, also LAMPLIGHTER_<FIELD>_FILE.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamplighter.model.errors import InvalidSettings
from lamplighter.model.names import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "LAMPLIGHTER_"
SECRETS = frozenset({"url", "http_secret"})
LIBPQ_SECRETS = frozenset({"PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"})
"""Variables from which PostgreSQL's client library takes a password, or the file that has it."""
CHOICES = {"log_format": ("console", "json")}
"""Settings that are one of a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set for a process. Times are in seconds."""

    url: str = dataclasses.field(default="sqlite:///lamplighter.db", repr=False)
    """Address of the store."""
    lease: float = 30.0
    """How long a claim holds without being renewed."""
    poll: float = 1.0
    """Longest sleep of an idle worker between two looks at the store."""
    grace: float = 30.0
    """Time that running jobs get after the first SIGTERM."""
    short_grace: float = 3.0
    """Time that running jobs get after the second SIGTERM."""
    timeout: float = 3600.0
    """Time a handler has, unless its type or submission says otherwise."""
    hard_after: float = 10.0
    """Time between a handler's timeout and the end of its process."""
    children: int = 0
    """Child processes of a worker; 0 means the number of cores, at most 4."""
    slots: int = 50
    """Jobs one child runs at once."""
    child_mb: int = 0
    """Megabytes of memory after which a child is replaced by a fresh one; 0 means never."""
    children_most: int = 0
    """Child processes a busy worker may grow to; 0 means that their number stays as it is."""
    process_slots: int = 0
    """Jobs that a worker runs in processes of their own at once; 0 means twice the cores, at
    least 4 and at most `slots`."""
    recycle_jobs: int = 10_000
    """Jobs after which such a process is replaced by a fresh one."""
    recycle_mb: int = 1024
    """Megabytes of memory after which such a process is replaced by a fresh one."""
    beat: float = 5.0
    """Time between two signs of life of a worker; 1.3 times that if there are very many workers."""
    version_wait: float = 3600.0
    """How long a job waits whose arguments no live version of its type takes, before it is dead."""
    keep_finished: float = 7 * 86_400.0
    """How long succeeded and cancelled jobs are kept."""
    keep_finished_count: int = 1_000_000
    """How many of them are kept at most."""
    keep_dead: float = 30 * 86_400.0
    """How long dead jobs are kept."""
    keep_keys: float = 7 * 86_400.0
    """How long idempotency keys are kept after their job is gone."""
    keep_audit: float = 90 * 86_400.0
    """How long entries of the audit log are kept, and tokens that were revoked or have expired."""
    store_deadline: float = 30.0
    """How long one call of the store may take before it counts as failed."""
    fire_newest_first: int = 0
    """1: while more falls due than can be fired at once, the newest occurrences go first."""
    fire_first: float = 10.0
    """While more falls due than can be fired at once, firing goes before taking jobs that are not
    critical, for so long at most; 0: never."""
    http_body_bytes: int = 256 * 1024
    """Bytes that the body of one HTTP request may have, and one job of a batch."""
    http_batch_bytes: int = 16 * 1024 * 1024
    """Bytes that a batch of jobs in one HTTP request may have."""
    http_batch_jobs: int = 10_000
    """Jobs that one HTTP request may submit."""
    http_json_depth: int = 64
    """Levels to which JSON in an HTTP request may be nested."""
    http_json_keys: int = 10_000
    """Keys that the JSON of an HTTP request may have, and one job of a batch."""
    http_json_values: int = 50_000
    """Values that the JSON of an HTTP request may have, keys among them, and one job of a batch;
    a whole batch may have 20 times as many."""
    http_json_string: int = 128 * 1024
    """Bytes that one text in the JSON of an HTTP request may have, as written."""
    http_json_digits: int = 64
    """Characters that one number in the JSON of an HTTP request may have."""
    http_header_bytes: int = 16 * 1024
    """Bytes that the headers of an HTTP request may have together."""
    http_url_bytes: int = 8 * 1024
    """Bytes that path and query of an HTTP request may have."""
    http_header_timeout: float = 10.0
    """How long a connection may take to send the headers of a request."""
    http_body_timeout: float = 10.0
    """How long a request may take to send its body."""
    http_timeout: float = 30.0
    """How long an HTTP request may take as a whole."""
    http_write_timeout: float = 30.0
    """How long an HTTP answer may not get on, because it is not read, before its connection is
    closed."""
    http_connections: int = 1_000
    """Connections that `lamplighter serve` has at once. For one more, the one that has been silent
    for longest is closed; while all have requests under way, it is refused with status 503."""
    http_events_interval: float = 1.0
    """Time between two looks at the store for `GET /v1/events`, while somebody listens. While
    nothing changes it grows to five times as much, except for single jobs."""
    http_events_listeners: int = 500
    """Listeners that `GET /v1/events` has at once, in one process."""
    http_events_each: int = 50
    """How many of these may be of one and the same caller."""
    http_rate: float = 0.0
    """Requests per second that each caller of one process may make on average; 0: no limit."""
    http_burst: int = 100
    """Requests that a caller who was quiet may make at once, where `http_rate` sets a limit."""
    http_anonymous_rate: float = 50.0
    """Requests per second that one address may make without saying who asks, or with a token that
    is not good, where tokens are asked for; 0: no limit. Good tokens from there are not touched."""
    http_anonymous_burst: int = 200
    """Such requests that an address that was quiet may make at once."""
    http_tenant_waiting: int = 0
    """Jobs that a tenant may have waiting, held ones among them, when a token of its own submits
    more, to which each process may add for a second what others do not know of; 0: no limit."""
    http_tenant_schedules: int = 0
    """Schedules that a tenant may have when a token of its own makes another; 0: no limit. To count
    them takes longer the more schedules there are, of all tenants together."""
    http_schedule_interval: float = 1.0
    """Time that has to pass between two occurrences of a schedule that a token of a tenant makes or
    changes; 0: no limit."""
    http_jwt_lifetime: float = 86_400.0
    """How long a JWT may be good for; those that say more are refused."""
    http_jwt_tenant: int = 0
    """1: JWTs without the claim `tenant`, which are for all tenants, are refused."""
    http_session_idle: float = 1_800.0
    """How long a session of the console lasts while nobody does anything in it."""
    http_session_lifetime: float = 43_200.0
    """How long a session of the console lasts at most; it ends with the token it began with."""
    http_page: int = 500
    """Items that one page of an HTTP listing may have."""
    http_queues: int = 1_000
    """Queues in the store from which on HTTP requests make no new ones. Those of published types,
    and those that an operator makes with `PUT /v1/queues/{name}`, are taken in any case."""
    http_tenant_queues: int = 50
    """New names of queues that tokens of one tenant may bring, until an operator removes some.
    Names of published types, and those that an operator makes, do not count."""
    http_unknown_types: int = 0
    """1: `lamplighter serve` takes jobs of types that no worker has published."""
    http_secret: str = dataclasses.field(default="", repr=False)
    """Signs the cursors of HTTP listings and the sessions of the console, with 32 characters or
    more. Give all `lamplighter serve` behind one address the same; without it each draws its own
    when it starts, and sessions end with it. Also as LAMPLIGHTER_HTTP_SECRET_FILE."""
    http_cors: str = ""
    """Origins whose pages may call the service with a token, such as `https://ops.example.com`,
    with commas between them; none by default. Cookies are never taken from there."""
    metrics: int = 1
    """0: workers and `lamplighter serve` count nothing, neither for metrics nor for the activity
    that is kept for a day."""
    metrics_names: int = 200
    """Queues, and job types, that metrics tell apart; what comes later is called `other`."""
    log_format: str = "console"
    """`console` or `json`: how `lamplighter worker` and `lamplighter serve` write their lines."""
    log_failures: int = 1
    """1: workers log each attempt that failed, through `logging` as `lamplighter.jobs`, at most
    five a minute for one cause; 0: they do not."""
    speed: float = 1.0
    """Divides every delay and retry pause; for demonstrations only."""


HARD_AFTER = (0.1, 86_400.0)
"""Bounds of the setting, and of the option of a job type."""
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "lease": (1.0, 3600.0),
    "poll": (0.01, 60.0),
    "grace": (0.0, 86_400.0),
    "short_grace": (0.0, 86_400.0),
    "timeout": (0.001, 366 * 86_400.0),
    "hard_after": HARD_AFTER,
    "children": (0, 256),
    "slots": (1, 10_000),
    "child_mb": (0, 1 << 20),
    "children_most": (0, 256),
    "process_slots": (0, 10_000),
    "recycle_jobs": (1, 10**9),
    "recycle_mb": (16, 1 << 20),
    "beat": (0.1, 10.0),
    "version_wait": (1.0, 366 * 86_400.0),
    "keep_finished": (900.0, 3650 * 86_400.0),
    "keep_finished_count": (0, 10**12),
    "keep_dead": (900.0, 3650 * 86_400.0),
    "keep_keys": (7 * 86_400.0, 3650 * 86_400.0),
    "keep_audit": (3600.0, 3650 * 86_400.0),
    "store_deadline": (1.0, 3600.0),
    "fire_newest_first": (0, 1),
    "fire_first": (0.0, 3600.0),
    "http_body_bytes": (1_024, 1 << 26),
    "http_batch_bytes": (1_024, 1 << 30),
    "http_batch_jobs": (1, 1_000_000),
    "http_json_depth": (4, 64),
    "http_json_keys": (10, 10_000_000),
    "http_json_values": (100, 100_000_000),
    "http_json_string": (256, 1 << 26),
    "http_json_digits": (20, 1_000),
    "http_header_bytes": (1_024, 1 << 20),
    "http_url_bytes": (256, 1 << 20),
    "http_header_timeout": (0.1, 3600.0),
    "http_body_timeout": (0.1, 3600.0),
    "http_timeout": (0.1, 3600.0),
    "http_write_timeout": (0.1, 3600.0),
    "http_connections": (1, 1_000_000),
    "http_events_interval": (0.05, 3600.0),
    "http_events_listeners": (1, 1_000_000),
    "http_events_each": (1, 1_000_000),
    "http_rate": (0.0, 1_000_000.0),
    "http_burst": (1, 1_000_000),
    "http_anonymous_rate": (0.0, 1_000_000.0),
    "http_anonymous_burst": (1, 1_000_000),
    "http_tenant_waiting": (0, 10_000),
    "http_tenant_schedules": (0, 1_000_000),
    "http_schedule_interval": (0.0, 366 * 86_400.0),
    "http_jwt_lifetime": (1.0, 366 * 86_400.0),
    "http_jwt_tenant": (0, 1),
    "http_session_idle": (60.0, 86_400.0),
    "http_session_lifetime": (300.0, 30 * 86_400.0),
    "http_page": (1, 10_000),
    "http_queues": (0, 1_000_000),
    "http_tenant_queues": (0, 1_000_000),
    "http_unknown_types": (0, 1),
    "metrics": (0, 1),
    "metrics_names": (1, 100_000),
    "log_failures": (0, 1),
    "speed": (0.001, 1_000_000.0),
}


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for programs that are not ours: without our addresses and keys."""
    names = {f"{PREFIX}{name.upper()}" for name in (*SECRETS, "token")}
    hidden = names | {f"{name}_FILE" for name in names} | LIBPQ_SECRETS
    return {name: value for name, value in environment.items() if name not in hidden}


def load(environment: Mapping[str, str] | None = None, **arguments: object) -> Settings:
    """Read settings from all places; arguments that are None do not count."""
    env = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for source, found in (
        _from_file(env),
        _from_environment(env),
        ("the argument", {k: v for k, v in arguments.items() if v is not None}),
    ):
        for name, value in found.items():
            values[name] = _checked(source, name, value)
    return Settings(**values)


def _from_file(env: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    named = env.get(PREFIX + "CONFIG")
    path = Path(named or "lamplighter.toml")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named is None:
            return str(path), {}
        raise InvalidSettings(
            f"the settings file {shown(named)} named by {PREFIX}CONFIG does not exist",
            hint=f"create it, or unset {PREFIX}CONFIG",
            value=named,
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(
            f"the settings file {shown(str(path))} cannot be read: {error}",
            hint="give a readable UTF-8 TOML file",
            value=str(path),
        ) from error
    try:
        return str(path), tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettings(
            f"the settings file {shown(str(path))} is not TOML: {error}",
            hint='write lines like `lease = 30` or `url = "sqlite:///jobs.db"`',
            value=str(path),
        ) from error


def _from_environment(env: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    found: dict[str, object] = {}
    for field in dataclasses.fields(Settings):
        name = PREFIX + field.name.upper()
        if name in env:
            found[field.name] = env[name]
        if field.name in SECRETS and (named := env.get(name + "_FILE")):
            try:
                found[field.name] = Path(named).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise InvalidSettings(
                    f"{name}_FILE names {shown(named)}, which cannot be read: {error}",
                    hint="mount the secret there, or unset the variable",
                    value=named,
                ) from error
    return "the environment", found


def _checked(source: str, name: str, value: object) -> object:
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    if name not in fields:
        raise InvalidSettings(
            f"unknown setting {shown(name)} in {source}",
            hint=f"known settings: {', '.join(sorted(fields))}",
            value=name,
        )
    if name in CHOICES and value not in CHOICES[name]:
        raise InvalidSettings(
            f"the setting `{name}` in {source} is {shown(value)}",
            hint=f"give one of: {', '.join(CHOICES[name])}",
            value=value,
        )
    if isinstance(fields[name].default, str):
        return str(value)
    whole = isinstance(fields[name].default, int)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _bad(source, name, value)
    try:
        number = float(value)
        if whole:
            number = int(value) if number == int(number) else math.nan
    except (ValueError, OverflowError):
        raise _bad(source, name, value) from None
    low, high = _BOUNDS[name]
    if not math.isfinite(number) or not low <= number <= high:
        raise _bad(source, name, value)
    return number


def _bad(source: str, name: str, value: object) -> InvalidSettings:
    low, high = _BOUNDS[name]
    return InvalidSettings(
        f"the setting `{name}` in {source} is {shown(value)}",
        hint=f"give a number between {low:g} and {high:g}",
        value=value,
    )
