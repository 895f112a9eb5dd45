"""Whatever is wrong with a submission is said at once, with value, cause and remedy, and nothing
of it is stored."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from lamplighter import Retry, payload
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    KeyConflict,
    PayloadTooLarge,
)
from lamplighter.model.names import check_name, check_schedule

LATE = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

BAD_OPTIONS = [
    ({"dealy": 5}, InvalidOption, "unknown option `dealy`"),
    ({"delay": -1}, InvalidTime, "delay `-1` is negative"),
    ({"delay": timedelta(seconds=-1)}, InvalidTime, "negative"),
    ({"delay": math.nan}, InvalidTime, "not a finite number"),
    ({"delay": math.inf}, InvalidTime, "not a finite number"),
    ({"delay": 10**400}, InvalidTime, "not a finite number"),
    ({"delay": "5"}, InvalidTime, "`5` is a str"),
    ({"delay": True}, InvalidTime, "is a bool"),
    ({"delay": 1e12}, InvalidTime, "beyond the year 9999"),
    ({"run_at": datetime(2030, 1, 1)}, InvalidTime, "no time zone"),  # noqa: DTZ001
    ({"run_at": "2030-01-01"}, InvalidTime, "not a datetime"),
    ({"run_at": LATE}, InvalidTime, "beyond the year 9999"),
    ({"delay": 5, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, InvalidOption, "both delay"),
    ({"priority": "urgent"}, InvalidOption, "unknown priority `urgent`"),
    ({"priority": 3}, InvalidOption, "unknown priority `3`"),
    ({"queue": ""}, InvalidName, "queue is empty"),
    ({"queue": "q" * 10_000}, InvalidName, "has 10000 characters"),
    ({"queue": "a\0b"}, InvalidName, "U\\+0000"),
    ({"queue": 5}, InvalidName, "not text"),
    ({"tenant": "t" * 65}, InvalidName, "has 65 characters"),
    ({"tenant": "\ud800"}, InvalidName, "U\\+D800"),
    ({"idempotency_key": ""}, InvalidName, "key is empty"),
    ({"idempotency_key": "k" * 257}, InvalidName, "has 257 characters"),
    ({"idempotency_key": "a\nb"}, InvalidName, "U\\+000A"),
    ({"retry": 3}, InvalidOption, "retry is `3`"),
    ({"retry": Retry(function=lambda attempt: 1.0)}, InvalidOption, "cannot travel"),
    ({"timeout": 0}, InvalidTime, "out of range"),
    ({"timeout": -5}, InvalidTime, "out of range"),
    ({"timeout": math.nan}, InvalidTime, "not a finite number"),
    ({"tags": "invoice"}, InvalidOption, "not a list of names"),
    ({"tags": 5}, InvalidOption, "not a list of names"),
    ({"tags": [f"t{n}" for n in range(21)]}, InvalidOption, "21 tags"),
    ({"tags": ["t" * 65]}, InvalidName, "has 65 characters"),
    ({"tags": [5]}, InvalidName, "not text"),
    ({"metadata": [1]}, InvalidPayload, "not a dict"),
    ({"metadata": {"a": math.nan}}, InvalidPayload, r"metadata\.a"),
    ({"metadata": {5: 1}}, InvalidPayload, "key that is not text"),
    ({"metadata": {"a": object()}}, InvalidPayload, r"metadata\.a"),
    ({"metadata": {"a": "x" * 70_000}}, PayloadTooLarge, "70,008"),
]


@pytest.mark.parametrize(("options", "error", "says"), BAD_OPTIONS)
async def test_bad_options_are_refused_and_nothing_is_stored(  # noqa: PLR0917
    charge, app, stored, options, error, says
):
    with pytest.raises(error, match=says) as caught:
        await charge.options(**options).submit("o-1")
    assert caught.value.hint
    with pytest.raises(error, match=says):
        await app.submit("charge", {"order_id": "o-1"}, **options)
    with pytest.raises(error, match=says):
        await app.submit("unheard_of", {"order_id": "o-1"}, **options)

    assert await stored() == 0


async def test_an_unknown_option_is_named_with_its_neighbour(charge):
    with pytest.raises(InvalidOption, match="did you mean `idempotency_key`"):
        charge.options(idempotencykey="x")


BAD_VALUES = [
    (math.nan, InvalidPayload, r"arguments\.value: `nan`"),
    (math.inf, InvalidPayload, r"arguments\.value: `inf`"),
    ({"items": [1, 2, 3, math.nan]}, InvalidPayload, r"arguments\.value\.items\[3\]"),
    (object(), InvalidPayload, "not JSON data"),
    ({1: "a"}, InvalidPayload, "key that is not text"),
    ("\ud800", InvalidPayload, "surrogate"),
    ("a\0b", InvalidPayload, "NUL"),
    (2**64, InvalidPayload, "64 bits"),
    ("x" * 70_000, PayloadTooLarge, r"70,012 bytes as JSON, the limit is 65,536"),
]


@pytest.mark.parametrize(("value", "error", "says"), BAD_VALUES)
async def test_values_that_cannot_be_kept_are_refused_and_nothing_is_stored(  # noqa: PLR0917
    take_anything, app, stored, value, error, says
):
    with pytest.raises(error, match=says) as caught:
        await take_anything.submit(value)
    assert caught.value.hint
    with pytest.raises(error, match=says):
        await app.submit_many([take_anything.call(1), take_anything.call(value)])
    with pytest.raises(error, match=says):
        await app.submit("unheard_of", {"value": value})

    assert await stored() == 0


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((5,), {}), (("o", "5"), {}), (("o", 1, 2), {}), (("o",), {"amount": 5})],
)
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored(
    charge, stored, args, kwargs
):
    with pytest.raises(InvalidArguments) as caught:
        await charge.submit(*args, **kwargs)

    assert "charge(order_id: str, cents: int = 100) -> str" in caught.value.hint
    assert await stored() == 0


@pytest.mark.parametrize("arguments", [None, [1], "o-1", 5])
async def test_arguments_must_have_names(app, stored, arguments):
    with pytest.raises(InvalidArguments, match="not given by name"):
        await app.submit("charge", arguments)

    assert await stored() == 0


@pytest.mark.parametrize("name", ["", "n" * 10_000, "a\0b"])
async def test_a_bad_type_name_is_refused_and_nothing_is_stored(app, stored, name):
    with pytest.raises(InvalidName):
        await app.submit(name, {})

    assert await stored() == 0


async def test_arguments_and_metadata_share_one_limit(take_anything, stored):
    half = "x" * 40_000

    with pytest.raises(PayloadTooLarge, match=r"40,012 bytes .* retry policy 40,008"):
        await take_anything.options(metadata={"a": half}).submit(half)

    assert await stored() == 0


async def test_the_largest_payload_is_stored(take_anything, stored):
    await take_anything.submit("x" * (65_536 - len('{"value":""}')))

    assert await stored() == 1


async def test_a_key_used_with_another_body_is_a_conflict(charge, app, stored):
    keyed = charge.options(idempotency_key="charge:o-1")
    first = await keyed.submit("o-1", 995)

    for other in (
        keyed.submit("o-1", 996),
        charge.options(idempotency_key="charge:o-1", delay=5).submit("o-1", 995),
        app.submit("refund", {"order_id": "o-1"}, idempotency_key="charge:o-1"),
    ):
        with pytest.raises(KeyConflict, match=first.id) as caught:
            await other
        assert caught.value.hint

    assert await stored() == 1


async def test_every_refusal_is_an_invalid_input(charge):
    with pytest.raises(InvalidInput):
        charge.options(delay=-1)


@pytest.mark.parametrize("job_id", ["", "nonsense", "x" * 26_000, "0" * 25, "U" * 26, "Z" * 26])
def test_what_is_no_job_id_is_refused(app, job_id):
    with pytest.raises(InvalidName, match="not a job id"):
        app.handle(job_id)


@pytest.mark.parametrize("calls", [None, 5, [5], ["charge"]])
async def test_what_is_no_list_of_calls_is_refused_whole(app, stored, calls):
    with pytest.raises(InvalidArguments, match="is not a list of calls"):
        await app.submit_many(calls)
    assert await stored() == 0


@pytest.mark.parametrize(
    "options", [{"delays": 5}, {"delays": "60"}, {"max_attempts": "5"}, {"max_attempts": 1.5}]
)
def test_a_retry_policy_of_the_wrong_types_is_refused(options):
    with pytest.raises(InvalidOption):
        Retry(**options)


@pytest.mark.parametrize("note", [5, None, "r" * 1001, "two\nlines"])
async def test_a_note_that_cannot_be_shown_is_refused(charge, note):
    handle = await charge.submit("o-1")
    with pytest.raises(InvalidInput, match="cannot be noted"):
        await handle.hold(reason=note)
    assert (await handle.record()).hold is None


def test_sets_are_the_same_bytes_in_every_process():
    assert payload.encode({"names": {"b", "a", "c"}}) == b'{"names":["a","b","c"]}'


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("option", ["queue", "tenant"])
async def test_a_name_that_no_address_can_lead_to_is_refused(app, option, name):
    with pytest.raises(InvalidName, match="cannot stand in an address"):
        await app.submit("charge", {}, **{option: name})


@pytest.mark.parametrize("name", [".", ".."])
def test_a_schedule_or_type_that_no_address_can_lead_to_is_refused(name):
    for check in (check_schedule, lambda value: check_name("job type", value)):
        with pytest.raises(InvalidName, match="cannot stand in an address"):
            check(name)
    assert check_name("queue", "...") == "..."


@pytest.mark.parametrize(
    "retry",
    [
        Retry(no_retry_on=["E" * 60_000, "F" * 60_000]),
        Retry(no_retry_on=[f"Error{n}" for n in range(10_000)]),
        Retry(delays=[1.5] * 20_000),
    ],
)
async def test_a_retry_policy_counts_with_the_arguments(app, retry):
    with pytest.raises(PayloadTooLarge, match="retry policy"):
        await app.submit("charge", {}, retry=retry)
