"""Arrays as text: PostgreSQL reads back what was given, whatever it is."""

import psycopg
import pytest

from lamplighter.engines.postgres import arrays

AWKWARD = [
    "",
    "plain",
    "NULL",
    "null",
    "a,b",
    '"',
    "\\",
    '\\"',
    "{}",
    '{"x"}',
    " ",
    "'",
    "\n",
    "ä\N{BUG}",
]


@pytest.mark.parametrize("values", [[], ["one"], AWKWARD, AWKWARD[::-1]])
def test_texts_are_read_as_they_were_given(admin: psycopg.Connection, values: list[str]) -> None:
    row = admin.execute("SELECT %s::text[]", (arrays.texts(values),)).fetchone()

    assert row == (values,)


def test_numbers_and_flags_are_read_as_they_were_given(admin: psycopg.Connection) -> None:
    numbers, flags = [0, -1, None, 2**62], [True, False, True]

    row = admin.execute(
        "SELECT %s::bigint[], %s::boolean[]", (arrays.numbers(numbers), arrays.flags(flags))
    ).fetchone()

    assert row == (numbers, flags)


def test_parts_are_found_in_the_bytes_of_all(admin: psycopg.Connection) -> None:
    parts = [b"first", None, b"", b"\x00\xff'\\", None]

    starts, sizes, data = arrays.joined(parts)
    rows = admin.execute(
        "SELECT substr(%s::bytea, start, size) FROM unnest(%s::integer[], %s::integer[]) "
        "AS part(start, size)",
        (data, starts, sizes),
    ).fetchall()

    assert [row[0] for row in rows] == parts


def test_nothing_at_all_is_not_sent() -> None:
    assert arrays.joined([None, None]) == (None, None, None)
