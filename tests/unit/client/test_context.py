from datetime import UTC, datetime
from threading import Event

import pytest

from lamplighter import CancelRequested, Context
from lamplighter.model.errors import InvalidName
from lamplighter.model.job import Claim, Extras, Fence, Job, Level


def context(*, attempt: int = 0, generation: int = 0, lease: int = 1) -> Context:
    job = Job(
        id="01J00000000000000000000000",
        type="charge",
        args=b"{}",
        queue="payments",
        level=Level.HIGH,
        tenant="acme",
        created_at_ms=1_000,
        due_at_ms=2_500,
        attempt=attempt,
        generation=generation,
        extras=Extras(tags=("eu",), metadata={"source": "import"}),
    )
    claim = Claim(job=job, fence=Fence(lease, "0" * 16), worker="w", handout=1)
    return Context.of(claim, Event())


def test_a_context_tells_what_the_claim_says():
    ctx = context(attempt=2, generation=1, lease=7)

    assert (ctx.job_id, ctx.type, ctx.queue, ctx.tenant) == (
        "01J00000000000000000000000",
        "charge",
        "payments",
        "acme",
    )
    assert (ctx.attempt, ctx.generation, ctx.lease) == (3, 1, 7)
    assert ctx.tags == ("eu",)
    assert ctx.metadata == {"source": "import"}
    assert ctx.created_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert ctx.due_at == datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)
    assert repr(ctx) == "<Context charge 01J00000000000000000000000 attempt 3>"


def test_an_effect_key_is_stable_over_attempts_and_new_after_a_replay():
    first, second = context(attempt=0, lease=1), context(attempt=4, lease=9)

    assert first.effect_key("charge") == second.effect_key("charge")
    assert first.effect_key("charge") != first.effect_key("refund")
    assert first.effect_key("charge") != context(generation=1).effect_key("charge")


def test_an_effect_needs_a_name():
    with pytest.raises(InvalidName, match="effect is empty"):
        context().effect_key("")


def test_a_handler_in_a_thread_can_ask_whether_to_stop():
    flag = Event()
    ctx = Context.sample(cancelled=flag)
    assert not ctx.cancel_requested
    ctx.raise_if_cancelled()

    flag.set()

    assert ctx.cancel_requested
    with pytest.raises(CancelRequested):
        ctx.raise_if_cancelled()


def test_except_exception_does_not_swallow_a_cancel():
    assert not issubclass(CancelRequested, Exception)


def test_a_sample_serves_for_calling_a_handler_directly():
    ctx = Context.sample(type="mail", attempt=2, metadata={"a": 1})

    assert (ctx.type, ctx.attempt, ctx.metadata) == ("mail", 2, {"a": 1})
