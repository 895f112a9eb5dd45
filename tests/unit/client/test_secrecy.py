"""Secret arguments: their values reach the handler and nobody else."""

import json
import logging
import time
from enum import Enum
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter import App
from lamplighter.model.errors import InvalidArguments, InvalidOption, InvalidPayload
from lamplighter.model.job import NO_EXTRAS
from lamplighter.port.values import NewWorker, TypeInfo
from lamplighter.registry import DoesNotFit, JobType, NotJson
from lamplighter.secrecy import HIDDEN, concealed, redactor

SECRET = "sk-live-9f8e7d6c5b4a"


def hide(text: str, value: object) -> str:
    redact = redactor(json.dumps({"token": value, "plain": "plain-value"}).encode(), ["token"])
    return text if redact is None else redact(text)


# ── texts ────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_is_hidden_wherever_it_stands():
    text = f"no access with {SECRET}, twice {SECRET}{SECRET}; plain-value stays"

    assert hide(text, SECRET) == (
        f"no access with {HIDDEN}, twice {HIDDEN}{HIDDEN}; plain-value stays"
    )


AWKWARD = [
    'it\'s a "secret"',
    "it's a secret",
    'a "secret"',
    "tab\tand\\backslash",
    "Grüße aus Köln",
    "𝔰𝔢𝔠𝔯𝔢𝔱",
    "a b&c/d?e=f%g",
    "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n",
]


@pytest.mark.parametrize("secret", AWKWARD)
@pytest.mark.parametrize(
    "write",
    [
        str,
        repr,
        ascii,
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: repr({"token": [secret]}),
        lambda secret: repr(f"""both ' and " quotes, and {secret}"""),
        lambda secret: json.dumps(f"a text with {secret} in it"),
        quote,
        quote_plus,
        lambda secret: quote(secret, safe=""),
    ],
)
def test_a_secret_is_hidden_as_python_json_and_urls_write_it(secret, write):
    text = hide(f"before {write(secret)} after", secret)

    assert HIDDEN in text
    assert text.startswith("before ")
    assert text.endswith(" after")
    for part in secret.splitlines():
        assert not any(form in text for form in {part, write(part).strip("'\"")})


def test_each_line_of_a_secret_is_hidden_by_itself():
    key = AWKWARD[-1]

    assert [hide(line, key) for line in key.splitlines()] == [HIDDEN] * 4


def test_a_secret_is_hidden_where_its_control_characters_were_removed():
    assert hide("it is pass\tword1 now", "\x1bpass\t\x00word\u202e1") == f"it is {HIDDEN} now"


def test_a_secret_that_an_error_message_has_cut_is_hidden():
    long = "s3cr3t-" * 20

    assert hide(f"`{long[:40]}…`", long) == f"`{HIDDEN}…`"


def test_all_that_lies_below_a_secret_name_is_hidden():
    value = {"number": 4111111111111111, "holder": {"names": ["Ada", "Lovelace"]}, "limit": 12.75}

    text = hide("card 4111111111111111 of Lovelace, limit 12.75", value)

    assert text == f"card {HIDDEN} of {HIDDEN}, limit {HIDDEN}"


def test_the_longest_value_is_hidden_first():
    assert hide("passwords", ["pass", "passwords", "password"]) == HIDDEN
    many = ["pass" + "x" * length for length in range(30)]
    assert hide(many[-1], many) == HIDDEN


@pytest.mark.parametrize("value", ["abc", "", 123, True, False, None, "true", "False", "null", []])
def test_what_is_too_short_or_too_common_is_left_in_texts(value):
    text = "abc 123 true False null None"

    assert hide(text, value) == text


def test_without_secrets_there_is_nothing_to_do():
    assert redactor(b'{"token": "abcdef"}', ()) is None
    assert redactor(b'{"other": "abcdef"}', ["token"]) is None


@pytest.mark.parametrize("written", [b"", b"{", b"\xff\xfe\xfd\xfc", b"secret text", b"[" * 5000])
def test_bytes_that_are_not_json_are_no_error(written):
    redact = redactor(written, ["token"])

    if redact is not None:
        assert "secret text" not in redact(f"it was {written.decode(errors='replace')}")


@given(st.text(min_size=4), st.text(), st.text())
def test_no_text_that_is_hidden_is_left(secret, before, after):
    redact = redactor(json.dumps({"token": secret}).encode("utf-8"), ["token"])

    if redact is not None and secret.lower() not in {"true", "false", "null", "none"}:
        assert redact(secret) != secret
        assert isinstance(redact(before + secret + after), str)


def test_thousands_of_values_are_hidden_quickly():
    values = [f"{number * 7919:08x}" for number in range(5000)]
    written = json.dumps({"token": values}).encode()
    text = "a line like any other, as there are many\n" * 400

    redact = redactor(written, ["token"])
    assert redact is not None
    started = time.perf_counter()
    redacted = redact(text + values[4321])
    assert time.perf_counter() - started < 0.5

    assert redacted == text + HIDDEN


# ── listings ─────────────────────────────────────────────────────────────────────────────────


def test_a_listing_shows_that_there_is_a_secret_and_nothing_of_it():
    written = b'{"order": "o-1", "pin": 12, "card": {"number": "4111"}, "flag": true}'

    shown = json.loads(concealed(written, ["pin", "card", "flag", "absent"]))

    assert shown == {"order": "o-1", "pin": HIDDEN, "card": HIDDEN, "flag": HIDDEN}


def test_a_listing_without_secrets_is_as_it_was_stored():
    assert concealed(b'{"a":  1}', ()) == b'{"a":  1}'


@pytest.mark.parametrize("written", [b"", b"{", b"\xff", b'["a"]', b'"a"', b"[" * 5000])
def test_what_is_no_object_is_hidden_as_a_whole(written):
    assert json.loads(concealed(written, ["token"])) == HIDDEN


# ── job types ────────────────────────────────────────────────────────────────────────────────


class Size(Enum):
    SMALL = "small"


class Model:
    """Validates like a pydantic model, and is as talkative about what it refuses."""

    @classmethod
    def model_validate(cls, value: object) -> "Model":
        raise ValueError(f"1 validation error\n  input_value={value!r} - at `$.order`")

    def model_dump(self, *, mode: str) -> object:
        raise RuntimeError(f"cannot dump {SECRET}")


class Rude:
    @classmethod
    def model_validate(cls, value: object) -> "Rude":
        raise LookupError(f"no such {value!r}")

    def model_dump(self, *, mode: str) -> object:
        return {}


def pay(order: str, token: str, size: Size = Size.SMALL) -> None: ...
def number(order: str, token: int) -> None: ...
def sized(order: str, token: Size) -> None: ...
def nested(order: str, token: dict[str, list[int]]) -> None: ...
def modelled(order: str, token: Model) -> None: ...
def rude(order: str, token: Rude) -> None: ...


def everything_in(error: BaseException | None) -> str:
    """All that a program may print of an error, with what it was raised from."""
    told = ""
    while error is not None:
        told += f"{error} {error!r} {error.args} {vars(error)}\n"
        error = error.__cause__ or error.__context__
    return told


@pytest.mark.parametrize(
    ("function", "token"),
    [
        (number, SECRET),
        (sized, SECRET),
        (nested, {SECRET: ["x"]}),
        (nested, {"a": [1, SECRET]}),
        (modelled, SECRET),
        (rude, SECRET),
    ],
)
def test_a_secret_that_does_not_fit_is_refused_without_being_quoted(function, token):
    job_type = JobType(function, secrets=("token",))

    with pytest.raises(InvalidArguments) as caught:
        job_type.bind(("o-1",), {"token": token})
    assert SECRET not in everything_in(caught.value)

    with pytest.raises(DoesNotFit) as caught:
        job_type.decode(json.dumps({"order": "o-1", "token": token}).encode())
    assert SECRET not in everything_in(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "token",
    [
        f"{SECRET}\0",
        f"{SECRET}\ud800",
        {SECRET: float("nan")},
        {1: SECRET},
        [SECRET, object()],
        Model(),
        type(SECRET, (), {"__repr__": lambda self: SECRET})(),
    ],
)
def test_a_secret_that_json_cannot_hold_is_refused_without_being_quoted(token):
    def anything(order, token) -> None: ...

    with pytest.raises(InvalidPayload, match=r"arguments\.token") as caught:
        JobType(anything, secrets=("token",)).bind(("o-1", token), {})

    assert SECRET not in everything_in(caught.value)
    assert caught.value.hint


def test_what_is_wrong_with_other_arguments_is_told_as_ever():
    job_type = JobType(pay, secrets=("token",))

    with pytest.raises(InvalidArguments, match=r"arguments\.size: `huge`") as caught:
        job_type.bind(("o-1", SECRET, "huge"), {})
    assert SECRET not in everything_in(caught.value)
    with pytest.raises(InvalidArguments, match="no argument `tokken`") as caught:
        job_type.bind(("o-1",), {"tokken": SECRET, "token": SECRET})
    assert SECRET not in everything_in(caught.value)
    with pytest.raises(InvalidArguments, match="4 arguments by position") as caught:
        job_type.bind(("o-1", SECRET, "small", SECRET), {})
    assert SECRET not in everything_in(caught.value)


@pytest.mark.parametrize("written", [f'"{SECRET}"', f'{{"token": "{SECRET}"', f'["{SECRET}"]'])
def test_stored_bytes_that_are_no_arguments_are_not_quoted(written):
    with pytest.raises(NotJson) as caught:
        JobType(pay, secrets=("token",)).decode(written.encode())

    assert SECRET not in everything_in(caught.value)


def test_a_result_that_cannot_be_kept_is_not_quoted():
    result, note = JobType(pay, secrets=("token",)).encode_result({SECRET: object()})

    assert (result, note) == (None, "the result was not kept: it is not JSON data")


def test_a_secret_that_is_no_argument_is_refused(app):
    with pytest.raises(InvalidOption, match="`tokn` is no argument of `pay`") as caught:
        app.job(pay, secrets=["tokn"])
    assert "did you mean `token`? its arguments: order, token, size" in caught.value.hint
    with pytest.raises(InvalidOption, match="not a list of names"):
        app.job(pay, secrets="token")


def test_a_command_may_have_any_secrets(app):
    backup = app.command("backup", ["true"], secrets=["password"])

    assert backup.call(password=SECRET).new.extras.secrets == ("password",)


def test_the_published_schema_marks_secrets_as_not_to_be_shown():
    marked = JobType(pay, secrets=("token",))
    properties = json.loads(marked.schema)["properties"]

    assert properties["token"]["writeOnly"] is True
    assert "writeOnly" not in properties["order"]
    assert marked.info().options["secrets"] == ["token"]
    assert marked.hash != JobType(pay).hash


# ── submissions ──────────────────────────────────────────────────────────────────────────────


async def test_a_job_carries_the_names_of_its_secrets(app):
    job = app.job(pay, secrets=["token"])

    by_call = await job.options(tags=["eu"]).submit("o-1", SECRET)
    by_name = await app.submit("pay", {"order": "o-1", "token": SECRET})

    for handle in (by_call, by_name):
        stored = (await handle.record()).job
        assert stored.extras.secrets == ("token",)
        assert json.loads(stored.args)["token"] == SECRET
    assert (await by_call.record()).job.extras.tags == ("eu",)


def test_types_without_secrets_carry_nothing(charge):
    assert charge.call("o-1").new.extras is NO_EXTRAS


async def test_secrets_do_not_change_what_a_key_stands_for(app, url):
    other = App(url)
    plain, marked = app.job(pay), other.job(pay, secrets=["token"])
    first = await plain.options(idempotency_key="k").submit("o-1", SECRET)

    again = await marked.options(idempotency_key="k").submit("o-1", SECRET)

    assert again.id == first.id
    assert again.existing
    await other.close()


async def test_a_type_without_code_here_has_the_secrets_its_workers_published(app):
    engine = await app.engine()
    for number_, names in enumerate((["token"], ["pin", "token"], "nonsense", None)):
        info = TypeInfo(
            name="elsewhere", schema="{}", hash=str(number_), queue="q", options={"secrets": names}
        )
        await engine.membership.join(
            NewWorker(id=f"w{number_}", host="h", pid=1, queues=("q",), slots=1, types=(info,))
        )

    handle = await app.submit("elsewhere", {"token": SECRET})

    assert (await handle.record()).job.extras.secrets == ("pin", "token")
    with pytest.raises(InvalidPayload, match=r"arguments\.token") as caught:
        await app.submit("elsewhere", {"token": [SECRET, float("nan")]})
    assert SECRET not in everything_in(caught.value)


async def test_arguments_without_names_are_not_quoted(app):
    app.job(pay, secrets=["token"])

    with pytest.raises(InvalidArguments, match="are a list") as caught:
        await app.submit("pay", ["o-1", SECRET])

    assert SECRET not in everything_in(caught.value)


async def test_handles_calls_and_types_do_not_show_arguments(app, caplog):
    job = app.job(pay, secrets=["token"])
    call = job.call("o-1", SECRET)
    (handle,) = await app.submit_many([call])
    logging.getLogger("test").warning("%r %r %r %r", call, handle, job, job.type)

    assert SECRET not in caplog.text
