"""Our submit as a bare statement, against a plain INSERT of the same row; both run by pgbench.

Ours is the very statement that the engine sends for one job, with its parameters as literals and
a new id each time. The plain one writes the same row, as literals but for the id, into a table
with the same columns and the same primary key, but no other index, and nothing else. Both are
prepared once by each of 32 clients and then repeated; all jobs belong to one tenant.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.engines import PostgresStore, fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import rounded
from benchmarks.fleet import fill, opened
from benchmarks.jobs import PAYLOAD
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter.engines.postgres import address
from lamplighter.engines.postgres.ids import Uuid, Uuids
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.model.job import NewJob

LEAST = 0.6
"""Part of the plain INSERT's rate that submit has to reach."""
CLIENTS = 32

_ROUNDS = 3
_COUNT = re.compile(r"transactions actually processed: (\d+)")
_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)


async def floor(bench: Bench) -> dict[str, object]:
    """Let both run in turn; medians of their rates."""
    with fresh_store(bench.engine, bench.folder) as store:
        if not isinstance(store, PostgresStore):
            return {"not_applicable": "no other program could run what this engine does"}
        async with opened(store) as program:
            await fill(program, 1)  # makes the lane, and the row that the plain INSERT repeats
        schema = address.parse(store.url).schema
        with store.server.connect() as connection:
            scripts = {"submit": await statement(schema), "plain": _plain(connection, schema)}
            rates: dict[str, list[float]] = {name: [] for name in scripts}
            for _ in range(_ROUNDS):
                for name, script in scripts.items():
                    connection.execute("CHECKPOINT")
                    table = sql.Identifier(schema, "job" if name == "submit" else "plain")
                    before = _rows(connection, table)
                    count, rate = _pgbench(store, script, bench.scale.floor_seconds)
                    if (stored := _rows(connection, table) - before) != count:
                        raise BenchmarkError(f"{name}: {count} calls stored {stored} rows")
                    rates[name].append(rate)
    return told(rates["submit"], rates["plain"])


class _Seen(Exception):
    """What would have been sent."""

    def __init__(self, text: str, parameters: Sequence[object]) -> None:
        self.text = text
        self.parameters = parameters


class _Onlooker:
    """Stands where the connections would, to see what is sent."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def function(self, name: str) -> str:
        return f'"{self.schema}"."{name}"'

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
    ) -> list[tuple[Any, ...]]:
        raise _Seen(statement, parameters)


async def statement(schema: str) -> str:
    """Give what the engine sends for one job, as a script of pgbench."""
    job = NewJob(id="0" * 26, type="count", args=f'{{"payload":"{PAYLOAD}"}}'.encode())
    try:
        await submit(_Onlooker(schema), [job])
    except _Seen as seen:
        values = iter(seen.parameters)
        return re.sub("%s", lambda _: _literal(next(values)), seen.text) + ";\n"
    raise BenchmarkError("the engine sends nothing to submit a job")


def _literal(value: object) -> str:
    if isinstance(value, Uuids):
        return "ARRAY[gen_random_uuid()]"
    if isinstance(value, Uuid):
        return "gen_random_uuid()"
    return sql.Literal(value).as_string()


def _plain(connection: psycopg.Connection, schema: str) -> str:
    """Make the plain table, and give the INSERT of the one job that is there."""
    job, plain = sql.Identifier(schema, "job"), sql.Identifier(schema, "plain")
    connection.execute(
        sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS, PRIMARY KEY (id))").format(plain, job)
    )
    cursor = connection.execute(sql.SQL("SELECT * FROM {}").format(job))
    (row,), names = cursor.fetchall(), [column.name for column in cursor.description or ()]
    given = {name: value for name, value in zip(names, row, strict=True) if value is not None}
    values = [
        sql.SQL("gen_random_uuid()") if name == "id" else sql.Literal(value)
        for name, value in given.items()
    ]
    return (
        sql.SQL("INSERT INTO {} ({}) VALUES ({});\n")
        .format(
            plain,
            sql.SQL(", ").join(map(sql.Identifier, given)),
            sql.SQL(", ").join(values),
        )
        .as_string()
    )


def _pgbench(store: PostgresStore, script: str, seconds: int) -> tuple[int, float]:
    """Let pgbench repeat a script; give how often it did, and how often per second."""
    program = store.server.binaries.pgbench
    if program is None:
        raise BenchmarkError(f"{store.server.binaries} has no pgbench")
    file = Path(store.folder) / "script.sql"
    file.write_text(script, encoding="utf-8")
    options = ["--no-vacuum", "--protocol=prepared", "--jobs=2", f"--client={CLIENTS}"]
    ended = subprocess.run(
        [program, *options, f"--time={seconds}", f"--file={file}", store.server.url()],
        capture_output=True,
        text=True,
        check=False,
    )
    count, rate = _COUNT.search(ended.stdout), _RATE.search(ended.stdout)
    if ended.returncode or count is None or rate is None:
        raise BenchmarkError(f"pgbench failed: {ended.stderr.strip()[-500:]}")
    return int(count[1]), float(rate[1])


def _rows(connection: psycopg.Connection, table: sql.Identifier) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchone()
    return row[0] if row else 0


def told(submits: Sequence[float], plains: Sequence[float]) -> dict[str, object]:
    """Compare the medians."""
    return {
        "submit_per_s": rounded(median(submits)),
        "plain_per_s": rounded(median(plains)),
        "share": rounded(median(submits) / median(plains)),
        "clients": CLIENTS,
        "submit_rounds": [rounded(rate) for rate in submits],
        "plain_rounds": [rounded(rate) for rate in plains],
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it; the budget stands there the other way round, as a time."""
    if "not_applicable" in part:
        return [Line("submit / plain INSERT, by pgbench", f"none: {part['not_applicable']}")]
    share = part["share"]
    return [
        Line(
            f"plain INSERT by pgbench, {part['clients']} clients", f"{part['plain_per_s']:,.0f} /s"
        ),
        Line("  our submit by pgbench", f"{part['submit_per_s']:,.0f} /s"),
        Line(
            f"  a call takes (plain: 1 ×; {share:.0%})", f"{1 / share:.3g} ×", 1 / share, 1 / LEAST
        ),
    ]
