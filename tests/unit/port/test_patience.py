"""How long a claim waits, by what the last answer said."""

import asyncio
from dataclasses import replace

import pytest

from lamplighter import runtime
from lamplighter.port.conformance.builders import request
from lamplighter.port.patience import ASK_AGAIN, Patience, topics_of, wait_for_work
from lamplighter.port.store import JobStore
from lamplighter.port.values import Claimed
from tests.unit.worker.fakes import Clock, FakeWakeup, make_claim

ASKED = request(limit=3)


@pytest.fixture
def clock():
    with runtime.install(clock := Clock()):
        yield clock


@pytest.fixture
def patience(clock) -> Patience:
    return Patience(1.0)


class Store:
    """Answers as it is told, and notes what it was asked."""

    def __init__(self, *answers: Claimed | Exception) -> None:
        self.answers = list(answers)
        self.did: list[str] = []
        self.jobs = JobStore(self._claim, self._wait)  # type: ignore[arg-type]

    async def _claim(self, verb: str, asked) -> Claimed:
        self.did.append(verb)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _wait(self, asked, patience) -> Claimed:
        return await self._claim("wait", asked)


@pytest.mark.parametrize(
    ("poll_after_ms", "rest", "seconds"),
    [(None, 0, 1.0), (300, 0, 0.3), (5_000, 0, 1.0), (None, 9.0, 9.0), (5_000, 9.0, 5.0)],
)
def test_it_waits_for_what_falls_due_as_long_as_the_store_says(
    patience, poll_after_ms, rest, seconds
):
    patience.answered(ASKED, Claimed([], poll_after_ms))

    assert patience.left(ASKED, rest) == pytest.approx(seconds)


def test_what_was_done_meanwhile_is_no_part_of_the_wait(patience, clock):
    patience.answered(ASKED, Claimed([], None))
    clock.seconds += 0.75
    assert patience.left(ASKED) == pytest.approx(0.25)
    clock.seconds += 0.5
    assert patience.left(ASKED) == 0.0


@pytest.mark.parametrize(
    "answer",
    [Claimed([], 0), Claimed([make_claim(0)], 0), Claimed([make_claim(n) for n in range(3)], None)],
)
def test_who_may_be_given_more_does_not_wait(patience, answer):
    patience.answered(ASKED, answer)

    assert patience.left(ASKED) == 0.0


def test_who_was_given_all_that_was_due_waits_for_more(patience):
    patience.answered(ASKED, Claimed([make_claim(0)], None))

    assert patience.left(ASKED) == 1.0


@pytest.mark.parametrize(
    "other", [{"types": ("other",)}, {"requirements": ("", "alone")}, {"queues": (("q", 3),)}]
)
def test_only_for_more_of_the_same_it_waits(patience, other):
    patience.answered(ASKED, Claimed([], None))

    assert patience.left(replace(ASKED, **other)) == 0.0
    assert patience.left(replace(ASKED, nonce="0" * 16, limit=1)) == 1.0


async def test_a_patient_claim_asks_waits_and_asks_again(patience):
    claimed = Claimed([make_claim(0)], None)
    store = Store(Claimed([], None), ASK_AGAIN, claimed)

    answers = [await store.jobs.claim(ASKED, patience) for _ in range(3)]

    assert store.did == ["claim", "wait", "claim"]
    assert answers[-1] is claimed


async def test_what_a_wait_has_taken_is_the_answer_and_the_next_waits_again(patience):
    claimed = Claimed([make_claim(0)], None)
    store = Store(Claimed([], None), claimed, Claimed([], None))

    answers = [await store.jobs.claim(ASKED, patience) for _ in range(3)]

    assert store.did == ["claim", "wait", "wait"]
    assert answers[1] is claimed


async def test_without_patience_a_claim_never_waits(patience):
    store = Store(*[Claimed([], None)] * 3)

    for _ in range(3):
        await store.jobs.claim(ASKED)

    assert store.did == ["claim"] * 3


async def test_after_an_error_the_store_is_asked_at_once(patience):
    store = Store(Claimed([], None), ASK_AGAIN, RuntimeError(), Claimed([], None))
    await store.jobs.claim(ASKED, patience)
    await store.jobs.claim(ASKED, patience)
    with pytest.raises(RuntimeError):
        await store.jobs.claim(ASKED, patience)

    await store.jobs.claim(ASKED, patience)

    assert store.did == ["claim", "wait", "claim", "claim"]


async def test_after_an_error_of_the_wait_the_store_is_asked_at_once(patience):
    store = Store(Claimed([], None), RuntimeError(), Claimed([], None))
    await store.jobs.claim(ASKED, patience)
    with pytest.raises(RuntimeError):
        await store.jobs.claim(ASKED, patience)

    await store.jobs.claim(ASKED, patience)

    assert store.did == ["claim", "wait", "claim"]


async def test_one_hurry_saves_one_wait(patience):
    store = Store(*[Claimed([], None)] * 3)
    await store.jobs.claim(ASKED, patience)
    patience.hurry()
    await store.jobs.claim(ASKED, patience)
    await store.jobs.claim(ASKED, patience)

    assert store.did == ["claim", "claim", "wait"]


async def test_who_hurries_while_the_store_is_asked_is_asked_again_at_once(patience):
    store = Store(*[Claimed([], None)] * 2)
    asked = store.jobs._call

    async def meanwhile(verb: str, request) -> Claimed:
        patience.hurry()
        return await asked(verb, request)

    store.jobs._call = meanwhile  # type: ignore[assignment]
    await store.jobs.claim(ASKED, patience)

    assert patience.left(ASKED) == 0.0


async def test_a_wait_may_be_hurried_twice_or_never():
    patience = Patience(1.0)
    waiting = asyncio.ensure_future(patience.during(asyncio.sleep(60)))
    await asyncio.sleep(0)
    patience.hurry()
    await asyncio.sleep(0)
    patience.hurry()
    await waiting

    await patience.during(asyncio.sleep(0))


async def test_an_error_of_the_wait_is_told():
    async def broken() -> None:
        raise TimeoutError("the store's own")

    with pytest.raises(TimeoutError, match="own"):
        await Patience(1.0).during(broken())


async def test_a_wait_is_for_the_topics_and_types_of_the_claim(patience):
    wakeup = FakeWakeup()
    patience.answered(ASKED, Claimed([], None))

    assert await wait_for_work(wakeup, ASKED, patience) is ASK_AGAIN

    assert wakeup.waits == [(["queue:default"], 1.0, ("work",))]


def test_who_takes_only_suspects_waits_for_the_topic_of_these():
    assert topics_of(request("a", "b")) == ["queue:a", "queue:b"]
    assert topics_of(request("a", requirements=("alone", "version:2+alone"))) == ["alone:a"]
