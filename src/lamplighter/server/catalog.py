"""The job types that workers have published, remembered for a moment, and what they take."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jsonschema_rs

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.model.errors import InvalidArguments
from lamplighter.model.job import Delivery, Level
from lamplighter.model.names import shown
from lamplighter.options import NO_OPTIONS, Options
from lamplighter.port.values import TypeRow
from lamplighter.secrecy import HIDDEN
from lamplighter.server.shapes import schema_of

log = logging.getLogger("lamplighter.server")

FRESH = 1.0
"""Seconds for which what was read is good enough."""
FRESH_UNKNOWN = 0.1
"""The same, for a type that is not there: its first worker may have just come."""
_LONGEST = 300
"""Characters of what a schema says against a value, which it quotes whole."""
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 20)
"""Schemas come from workers: their patterns are matched in linear time, or not at all."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Where arguments do not fit a schema, and why."""

    path: str
    why: str


class Published:
    """One job type, in all its versions."""

    def __init__(self, rows: Sequence[TypeRow]) -> None:
        self.name = rows[0].name
        # Versions whose workers are all gone count only while there is no other.
        living = [row for row in rows if row.live_workers] or list(rows)
        self._row = max(living, key=lambda row: row.live_workers)
        self.secrets = tuple(sorted({name for row in rows for name in _secrets(row)}))
        self._last: tuple[Options | None, Options] = (None, NO_OPTIONS)
        """The options that were filled last: many submissions have the very same."""
        self._validators = [_validator(row, hide=bool(self.secrets)) for row in living]

    def filled(self, options: Options) -> Options:
        """Fill what a submission leaves open with what the workers say."""
        before, after = self._last
        if options is not before:
            after = self._over(options)
            self._last = (options, after)
        return after

    def _over(self, options: Options) -> Options:
        row = self._row
        return options.over(
            queue=row.queue,
            level=Level.of(row.options.get("priority", "normal")),
            delivery=Delivery(str(row.options.get("delivery", Delivery.AT_LEAST_ONCE))),
            secrets=self.secrets,
        )

    def check(self, arguments: Mapping[str, object]) -> None:
        """Refuse arguments that fit no version of the type; say what the first one misses."""
        first: Misfit | None = None
        for validate in self._validators:
            misfit = validate(arguments)
            if misfit is None:
                return
            first = first or misfit
        if first is not None:
            raise InvalidArguments(
                f"the arguments do not fit {shown(self.name)}: {first.path}: {first.why}",
                hint="GET /v1/types has the schema of what each type takes",
                value=first.path,
            )


class Catalog:
    """Reads the published types, not more often than needed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Published] = {}
        self._rows: list[TypeRow] = []
        self._queues: frozenset[str] = frozenset()
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def get(self, name: str) -> Published | None:
        """Return a type, or None if no worker has published it."""
        await self._refresh(FRESH if name in self._known else FRESH_UNKNOWN)
        return self._known.get(name)

    async def queues(self) -> frozenset[str]:
        """Return the queues that workers have named for their types."""
        await self._refresh(FRESH)
        return self._queues

    async def _refresh(self, fresh: float) -> None:
        if self._age > fresh:
            # Whoever comes while one reads waits for that, and does not read again.
            async with self._reading:
                if self._age > fresh:
                    await self._read()

    @property
    def _age(self) -> float:
        return runtime.monotonic() - self._read_at

    async def _read(self) -> None:
        engine = await self._client.engine()
        rows = await self._client.repeatable(engine.inspector.types)
        self._read_at = runtime.monotonic()
        if rows == self._rows:
            return
        versions: dict[str, list[TypeRow]] = {}
        for row in rows:
            versions.setdefault(row.name, []).append(row)
        self._known = {name: Published(found) for name, found in versions.items()}
        self._rows = rows
        self._queues = frozenset(row.queue for row in rows)


def _secrets(row: TypeRow) -> list[str]:
    listed = row.options.get("secrets")
    if isinstance(listed, (list, tuple)):
        return list(map(str, cast("Sequence[object]", listed)))
    return []


def _validator(row: TypeRow, *, hide: bool) -> Callable[[Mapping[str, object]], Misfit | None]:
    """Make the check of one version; a schema that cannot be used accepts everything."""
    schema: dict[str, Any] = schema_of(row)
    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema,
            mask=HIDDEN if hide else None,
            pattern_options=_PATTERNS,
            retriever=_no_references,
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        # Its workers check the arguments once more; no job is lost for a schema of theirs.
        log.warning("the schema of %s (%s) cannot be used: %s", row.name, row.hash, error)
        return lambda _: None

    def validate(arguments: Mapping[str, object]) -> Misfit | None:
        # Whether is quicker to say than why.
        if validator.is_valid(arguments):
            return None
        for error in validator.iter_errors(dict(arguments)):
            steps = (
                f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
            )
            why = error.message
            return Misfit(
                f"arguments{''.join(steps)}", why if len(why) <= _LONGEST else f"{why[:_LONGEST]}…"
            )
        return None

    return validate


def _no_references(uri: str) -> Any:
    """Refuse to fetch parts of a schema from elsewhere."""
    raise ValueError(f"{uri} is not part of the schema")
