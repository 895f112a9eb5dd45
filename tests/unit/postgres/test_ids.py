"""Ids on their way to the server and back: 26 characters outside, a uuid inside."""

import uuid as reference

import psycopg
import pytest

from lamplighter.engines.postgres import ids
from lamplighter.model.ids import RANDOM_BITS, compose

FIRST = "0" * 26
LAST = "7" + "Z" * 25


@pytest.fixture
def connection(admin: psycopg.Connection) -> psycopg.Connection:
    ids.register(admin)
    return admin


def some(count: int) -> list[str]:
    return [
        compose(1_700_000_000_000 + n, n % 1024, n * 7919 % 2**RANDOM_BITS) for n in range(count)
    ]


def test_a_list_of_ids_arrives_in_order_and_comes_back(connection: psycopg.Connection):
    given = [FIRST, *some(500), LAST]

    rows = connection.execute(
        "SELECT id, uuid_send(id) FROM unnest(%s) WITH ORDINALITY AS t(id, place) ORDER BY place",
        (ids.uuids(given),),
        binary=True,
    ).fetchall()

    assert [row[0] for row in rows] == given
    assert ids.texts([row[1] for row in rows]) == given


def test_one_id_arrives(connection: psycopg.Connection):
    row = connection.execute("SELECT %s, %s::text", (ids.uuid(LAST),) * 2, binary=True).fetchone()

    assert row == (LAST, str(reference.UUID(int=2**128 - 1)))


def test_the_bits_are_those_of_the_id():
    job_id = compose(0x0123456789AB, 5, 77)

    assert ids.uuid(job_id) == ((0x0123456789AB << 80) | (5 << 70) | 77).to_bytes(16, "big")


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 1000])
def test_any_number_of_ids_is_written_the_same_way(count: int):
    values = [ids.uuid(job_id) for job_id in some(count)]

    assert ids.texts(values) == [ids.text(value) for value in values] == some(count)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "8" + "0" * 25,
        "0" * 25,
        "0" * 27,
        "0" * 25 + "U",
        "0" * 25 + "a",
        "0_0" + "0" * 23,
        " " + "0" * 25,
        "+" + "0" * 25,
        "0" * 25 + "é",
        "0" * 25 + "\ud800",
        "\u0664" * 26,
    ],
)
def test_what_is_no_id_is_null_and_its_neighbours_stay(connection: psycopg.Connection, text: str):
    row = connection.execute(
        "SELECT array_position(%s, NULL), cardinality(%s), %s::uuid IS NULL",
        (ids.uuids([LAST, text, FIRST]), ids.uuids([LAST, text, FIRST]), ids.uuid(text)),
        binary=True,
    ).fetchone()

    assert row == (2, 3, True)


def test_no_ids_are_an_empty_array(connection: psycopg.Connection):
    row = connection.execute("SELECT cardinality(%s)", (ids.uuids([]),)).fetchone()

    assert row == (0,)


def test_two_lists_that_differ_only_in_a_border_are_told_apart():
    with_border = ids.uuids([FIRST[:-1], FIRST + "0"])

    assert with_border != ids.uuids([FIRST, FIRST])
