"""The address of a store: our options taken out, the password never shown."""

import pytest

from lamplighter.engines.postgres.address import parse
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidUrl


def test_the_defaults_are_a_schema_of_our_own_four_connections_and_wake_ups():
    address = parse("postgresql://ada@db.example:6000/work")

    assert (address.schema, address.pool, address.listen) == ("lamplighter", 4, True)
    given = {name: address.parameters[name] for name in ("host", "port", "dbname", "user")}
    assert given == {"host": "db.example", "port": "6000", "dbname": "work", "user": "ada"}


def test_our_options_are_taken_out_and_all_others_are_passed_on():
    address = parse(
        "postgres://h/db?schema=jobs_2&sslmode=require&pool=9&listen=off&application_name=a%20b"
    )

    assert (address.schema, address.pool, address.listen) == ("jobs_2", 9, False)
    assert address.parameters["sslmode"] == "require"
    assert address.parameters["application_name"] == "a b"
    assert not {"schema", "pool", "listen"} & address.parameters.keys()


def test_what_the_user_says_goes_before_our_defaults():
    address = parse("postgresql://h/db?connect_timeout=3&target_session_attrs=any")

    assert address.parameters["connect_timeout"] == "3"
    assert address.parameters["target_session_attrs"] == "any"
    assert parse("postgresql://h/db").parameters["target_session_attrs"] == "read-write"


def test_several_hosts_are_possible():
    address = parse("postgresql://ada@one:5432,two:5433/db?pool=5")

    assert (address.parameters["host"], address.parameters["port"]) == ("one,two", "5432,5433")


@pytest.mark.parametrize(
    "schema",
    ["", "Jobs", "1st", "a-b", 'a"b', "a b", "a.b", "pg_jobs", "x" * 64, "cab%C3%A9", "a%00"],
)
def test_a_schema_that_would_need_quotes_is_refused(schema: str):
    with pytest.raises(InvalidUrl) as refused:
        parse(f"postgresql://h/db?schema={schema}")

    assert refused.value.hint


@pytest.mark.parametrize("pool", ["", "0", "2", "-1", "four", "101", "9" * 30, "4.5", "\u0664"])
def test_a_pool_too_small_or_no_number_is_refused(pool: str):
    with pytest.raises(InvalidUrl, match="pool"):
        parse(f"postgresql://h/db?pool={pool}")


def test_wake_ups_are_on_or_off():
    with pytest.raises(InvalidUrl, match="listen"):
        parse("postgresql://h/db?listen=maybe")


def test_a_server_that_forgets_is_accepted_only_when_the_address_says_so():
    assert parse("postgresql://h/db").durable
    assert not parse("postgresql://h/db?durability=none").durable
    assert "durability" not in parse("postgresql://h/db?durability=none").parameters
    with pytest.raises(InvalidUrl, match="durability"):
        parse("postgresql://h/db?durability=maybe")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:/h/db",
        "postgresql",
        "mysql://h/db",
        "postgresql://h/db?no_such_option=1",
        "postgresql://ada:secret@h:port:9/db",
        "postgresql://ada:sec%zzret@h/db",
        "postgresql://[::1/db",
    ],
)
def test_an_address_that_cannot_be_read_says_what_to_write(url: str):
    with pytest.raises(InvalidUrl) as refused:
        parse(url)

    assert "postgresql://user:password@host" in refused.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@h/db",
        "postgresql://ada:secret@h/db?pool=1",
        "postgresql://ada:se@secret@h/db?nonsense=1",
        "postgresql://ada:x/secret@h/db",
        "postgresql://ada:what?secret@h/db",
        "postgresql://ada:sec%zzsecret@h/db",
        "postgresql://h/db?password=secret&user=ada&pool=0",
        "postgresql://h/db?pass%77ord=secret&nonsense=1",
        "postgres:ada:secret@h/db",
    ],
)
def test_a_password_is_in_no_error_and_in_no_shown_address(url: str):
    assert "secret" not in redacted(url)
    assert "secret" not in _everything_said(url)


def test_an_address_without_a_password_is_shown_as_it_is():
    url = "postgresql://ada@one,two:5433/db?schema=jobs&sslmode=require"

    assert redacted(url) == url


def _everything_said(url: str) -> str:
    try:
        return repr(parse(url))
    except InvalidUrl as error:
        return f"{error} {error.value!r} {error.__context__!r}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:pass@secret@db.example/work",
        "postgresql://ada:p@secret@one:5432,two:5433/work",
    ],
)
def test_the_rest_of_a_password_is_not_taken_for_a_host(url: str):
    with pytest.raises(InvalidUrl, match="an @ too many") as refused:
        parse(url)
    assert "secret" not in str(refused.value)
    assert "%40" in refused.value.hint


def test_a_socket_may_have_a_name_with_an_at_sign():
    assert parse("postgresql:///work?host=@lamps").parameters["host"] == "@lamps"
    assert parse("postgresql:///work?host=/run/a@b").parameters["host"] == "/run/a@b"


def test_a_port_that_no_machine_has_is_refused():
    with pytest.raises(InvalidUrl, match="above 65535"):
        parse("postgresql://ada@db.example:99999/work")
