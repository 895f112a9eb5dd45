"""What a test says about submissions."""

from datetime import date, datetime, timedelta

import pytest

from lamplighter import App, InvalidInput, testing
from lamplighter.model.job import Status
from tests.unit.testing.conftest import NOON


async def test_what_was_submitted_is_listed_in_order(t, charge) -> None:
    await charge.submit("o-1", 995)
    await charge.options(tenant="acme", delay=60, tags=["eu"], metadata={"a": 1}).submit("o-2")

    first, second = t.submitted(charge)

    assert first.arguments == {"order_id": "o-1", "cents": 995}
    assert (first.queue, first.tenant, first.delay) == ("payments", "default", 0)
    assert first.status is Status.READY
    assert second.arguments == {"order_id": "o-2", "cents": 100}
    assert (second.tenant, second.delay, second.due_at) == ("acme", 60, NOON + timedelta(minutes=1))
    assert (second.tags, second.metadata) == (("eu",), {"a": 1})
    assert second.status is Status.SCHEDULED
    assert second.record.job.id == second.id


async def test_assert_submitted_by_arguments_and_options(t, charge) -> None:
    await charge.options(tenant="acme", delay=60, priority="high", tags=["eu"]).submit("o-1", 995)

    t.assert_submitted(charge)
    t.assert_submitted("charge")
    (found,) = t.assert_submitted(
        charge,
        order_id="o-1",
        cents=995,
        count=1,
        queue="payments",
        tenant="acme",
        priority="high",
        delay=60,
        run_at=NOON + timedelta(minutes=1),
        tags=["eu"],
    )
    assert found.arguments["cents"] == 995
    t.assert_submitted(charge, delay=timedelta(minutes=1), tags="eu")


@pytest.mark.parametrize(
    "wrong",
    [
        {"order_id": "o-2"},
        {"queue": "default"},
        {"tenant": "default"},
        {"priority": "low"},
        {"delay": 0},
        {"run_at": NOON},
        {"tags": ["us"]},
        {"count": 2},
    ],
)
async def test_each_difference_fails_and_lists_what_was_submitted(t, charge, wrong) -> None:
    await charge.options(tenant="acme", delay=60, tags=["eu"]).submit("o-1", 995)

    with pytest.raises(testing.NotSubmitted) as caught:
        t.assert_submitted(charge, **wrong)

    assert isinstance(caught.value, AssertionError)
    assert (
        "  charge(order_id='o-1', cents=995): queue payments, tenant acme, delay 60 s, scheduled"
    ) in str(caught.value)


async def test_the_message_says_what_was_wanted_and_how_often(t, charge) -> None:
    with pytest.raises(testing.NotSubmitted, match=r"(?s)charge\(\) was not submitted.*nothing"):
        t.assert_submitted(charge)
    await charge.submit("o-1")
    await charge.submit("o-1")
    with pytest.raises(testing.NotSubmitted, match="was submitted 2 times, not 1"):
        t.assert_submitted(charge, order_id="o-1", count=1)


async def test_a_long_list_is_cut(t, app: App, charge) -> None:
    await app.submit_many([charge.call(f"o-{n}") for n in range(25)])
    with pytest.raises(testing.NotSubmitted, match=r"… and 5 more"):
        t.assert_submitted(charge, order_id="none")


async def test_assert_not_submitted(t, charge) -> None:
    t.assert_not_submitted(charge)
    await charge.submit("o-1")
    t.assert_not_submitted(charge, order_id="o-2")
    t.assert_not_submitted(charge, tenant="acme")
    t.assert_submitted(charge, order_id="o-2", count=0)

    with pytest.raises(testing.StillSubmitted, match=r"(?s)submitted once.*order_id='o-1'"):
        t.assert_not_submitted(charge)
    with pytest.raises(testing.StillSubmitted):
        t.assert_submitted(charge, count=0)


async def test_a_misspelt_argument_is_an_error_and_no_silent_pass(t, charge) -> None:
    with pytest.raises(InvalidInput, match="did you mean `order_id`"):
        t.assert_not_submitted(charge, ordr_id="o-1")


async def test_arguments_are_compared_as_they_travel(t, app: App) -> None:
    @app.job
    async def remind(at: datetime, days: list[date], note: str = "hello") -> None: ...

    await remind.submit(NOON, [date(2030, 1, 2)])

    t.assert_submitted(remind, at=NOON, days=[date(2030, 1, 2)], note="hello")
    t.assert_submitted(remind, at="2030-01-01T12:00:00Z", days=("2030-01-02",))


async def test_arguments_with_the_names_of_options(t, app: App) -> None:
    @app.job
    async def move(queue: str, count: int) -> None: ...

    await move.submit("left", 3)

    t.assert_submitted(move, arguments={"queue": "left", "count": 3}, queue="default", count=1)
    with pytest.raises(InvalidInput, match="may mean the option or the argument"):
        t.assert_submitted(move, queue="left")
    with pytest.raises(InvalidInput, match="may mean the option or the argument"):
        t.assert_submitted(move, count=3)


async def test_types_without_code_here_are_listed_as_plain_json(t, app: App) -> None:
    await app.submit("elsewhere", {"a": [1, 2]})

    (found,) = t.assert_submitted("elsewhere", a=[1, 2])
    assert found.arguments == {"a": [1, 2]}
    t.assert_not_submitted("elsewhere", b=1)


async def test_the_same_submission_twice_is_one_job(t, charge) -> None:
    for _ in range(2):
        await charge.options(idempotency_key="k").submit("o-1")

    t.assert_submitted(charge, count=1)


async def test_jobs_that_have_ended_count_too(t, charge) -> None:
    await charge.submit("o-1")
    await t.drain()

    (found,) = t.assert_submitted(charge, order_id="o-1")
    assert found.status is Status.SUCCEEDED
