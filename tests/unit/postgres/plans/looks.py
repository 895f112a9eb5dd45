"""Reads plans: where a statement looked, through which index, and how much it found there."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = dict[str, Any]

BIG = frozenset(
    {
        "arrival",
        "attempt",
        "dead",
        "done",
        "idempotency",
        "job",
        "log",
        "progress",
        "request",
        "share",
        "turn",
    }
)
"""Tables that grow with the jobs, or with the claims of an hour."""


@dataclass(frozen=True, slots=True)
class Names:
    """Which table an index belongs to, and of which table or index something is a part."""

    wholes: Mapping[str, str]
    tables: Mapping[str, str]

    def __or__(self, other: "Names") -> "Names":
        return Names({**self.wholes, **other.wholes}, {**self.tables, **other.tables})

    def whole(self, name: str) -> str:
        return self.wholes.get(name, name)


@dataclass(frozen=True, slots=True)
class Look:
    """One scan of one table in one statement, all its rounds together."""

    kind: str
    table: str
    index: str | None
    rows: int
    """Rows that were read: those given on, and those that a filter then removed."""
    buffers: int

    def __str__(self) -> str:
        return f"{self.kind} on {self.table} by {self.index}: {self.rows} rows"


@dataclass(frozen=True, slots=True)
class Plans:
    """All that one call did, statements inside its functions included."""

    looks: tuple[Look, ...]
    buffers: int
    """Pages that the whole call touched, those of the catalogue too."""

    def __str__(self) -> str:
        most = sorted(self.looks, key=lambda look: (-look.rows, look.table))
        return "\n".join(str(look) for look in most[:12])

    @property
    def rows(self) -> int:
        """Rows of the big tables that were read."""
        return sum(look.rows for look in self.looks if look.table in BIG)

    @property
    def sequential(self) -> list[Look]:
        """Scans of big tables that read all of it."""
        return [look for look in self.looks if look.kind == "Seq Scan" and look.table in BIG]

    def indexes(self, table: str) -> set[str | None]:
        """Through what a table was looked at; those who read nothing count as well."""
        return {look.index for look in self.looks if look.table == table and look.index}

    def buffers_of(self, table: str) -> int:
        return sum(look.buffers for look in self.looks if look.table == table)


def read(messages: Iterable[str], names: Names) -> Plans:
    """Read what the server said about one call; the statement that was sent comes last."""
    plans = [json.loads(text[text.index("{") :])["Plan"] for text in messages if " plan:\n" in text]
    if not plans:
        raise AssertionError("the server told no plan of this call")
    looks = [_look(node, names) for plan in plans for node in _nodes(plan) if _scans(node)]
    return Plans(tuple(looks), _buffers(plans[-1]))


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _scans(node: Node) -> bool:
    return node["Node Type"] == "Bitmap Index Scan" or (
        "Relation Name" in node and node["Node Type"] != "ModifyTable"
    )


def _look(node: Node, names: Names) -> Look:
    index: str | None = node.get("Index Name")
    table: str = node.get("Relation Name") or names.tables.get(index or "", "")
    each = node["Actual Rows"] if "Relation Name" in node else 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return Look(
        kind=node["Node Type"],
        table=names.whole(table),
        index=None if index is None else names.whole(index),
        rows=round((each + removed) * node["Actual Loops"]),
        buffers=_buffers(node) - sum(_buffers(child) for child in node.get("Plans", ())),
    )


def _buffers(node: Node) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])
