import asyncio
import math

import pytest

from lamplighter import JobFailed, ResultOmitted, ResultTimeout, Status, UnknownJob, WrongState
from lamplighter.model.errors import InvalidTime
from lamplighter.model.job import ErrorInfo
from lamplighter.model.outcome import Failed, Rejected, Succeeded
from lamplighter.port.values import ChangeAnswer, Why

NOBODY = "01J00000000000000000000000"


async def test_a_result_is_awaited(charge, finish):
    handle = await charge.submit("o-1")
    waiting = asyncio.create_task(handle.result(timeout=10))

    await finish(Succeeded(b'"paid"'))

    assert await waiting == "paid"
    assert await handle.result(timeout=0) == "paid"
    assert await handle.status() is Status.SUCCEEDED


async def test_many_wait_for_their_own_results(charge, finish):
    handles = [await charge.submit(f"o-{n}") for n in range(10)]
    waiting = asyncio.gather(*(handle.result(timeout=10) for handle in handles))

    await finish(Succeeded(b'"paid"'))

    assert await waiting == ["paid"] * 10


async def test_no_result_is_none(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Succeeded())

    assert await handle.result(timeout=5) is None


async def test_a_result_that_was_not_kept_is_said_and_not_made_up(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Succeeded(None, "the result was not kept: it has 70,002 bytes as JSON"))

    with pytest.raises(ResultOmitted, match="succeeded, but the result was not kept"):
        await handle.result(timeout=5)


async def test_a_handle_from_an_id_reads_the_result_by_the_registered_type(app, charge, finish):
    handle = await charge.submit("o-1")
    await finish(Succeeded(b'"paid"'))

    assert await app.handle(handle.id.lower()).result(timeout=5) == "paid"


async def test_a_result_of_an_unknown_type_is_plain_data(app, charge, finish, url):
    from lamplighter import App

    handle = await charge.submit("o-1")
    await finish(Succeeded(b'"paid"'))

    async with App(url) as other:
        assert await other.handle(handle.id).result(timeout=5) == "paid"


async def test_waiting_ends_at_the_timeout(charge):
    handle = await charge.submit("o-1")

    with pytest.raises(ResultTimeout, match=r"within 0\.05 s; it is ready"):
        await handle.result(timeout=0.05)


@pytest.mark.parametrize("timeout", [-1, math.nan, "5", True])
async def test_a_timeout_must_be_a_time(charge, timeout):
    handle = await charge.submit("o-1")

    with pytest.raises(InvalidTime, match="timeout"):
        await handle.result(timeout=timeout)


async def test_a_dead_job_raises_with_its_reason_and_error(charge, finish):
    handle = await charge.submit("o-1")
    error = ErrorInfo(type="CardError", message="declined")
    await finish(Rejected("no money", error))

    with pytest.raises(
        JobFailed, match=r"dead: rejected: no money \(CardError: declined\)"
    ) as caught:
        await handle.result(timeout=5)
    assert "traceback" in caught.value.hint


async def test_a_rejected_job_without_an_error_promises_no_traceback(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Rejected("no money"))

    with pytest.raises(JobFailed, match="dead: rejected: no money") as caught:
        await handle.result(timeout=5)
    assert caught.value.hint == "`await handle.retry()` runs it again"


async def test_an_error_that_says_nothing_is_named_alone(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Rejected("no money", ErrorInfo(type="MemoryError", message="")))

    with pytest.raises(JobFailed, match=r"\(MemoryError\)"):
        await handle.result(timeout=5)


async def test_a_cancelled_job_raises_too(charge):
    handle = await charge.submit("o-1")

    assert await handle.cancel(reason="not wanted") is ChangeAnswer.DONE

    with pytest.raises(JobFailed, match="is cancelled"):
        await handle.result(timeout=5)
    assert await handle.cancel() is ChangeAnswer.ALREADY


async def test_a_cancel_wakes_who_waits_for_the_result(charge):
    handle = await charge.submit("o-1")
    waiting = asyncio.create_task(handle.result(timeout=10))
    await asyncio.sleep(0)

    await handle.cancel()

    with pytest.raises(JobFailed):
        await waiting


async def test_a_running_job_is_asked_to_stop(charge, claim):
    handle = await charge.submit("o-1")
    await claim()

    assert await handle.cancel() is ChangeAnswer.REQUESTED
    assert await handle.status() is Status.CANCELLING


async def test_what_has_ended_cannot_be_cancelled_or_held(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Succeeded())

    with pytest.raises(WrongState, match=r"cannot cancel job .*: it is succeeded"):
        await handle.cancel()
    with pytest.raises(WrongState, match="cannot hold"):
        await handle.hold()


async def test_a_held_job_waits_until_it_is_unheld(charge, claim):
    handle = await charge.submit("o-1")

    assert await handle.hold(by="ann", reason="check") is ChangeAnswer.DONE
    assert await handle.status() is Status.PAUSED
    assert await claim() == []
    assert (await handle.explain()).reasons[0].why is Why.HELD_JOB

    assert await handle.unhold() is ChangeAnswer.DONE
    assert len(await claim()) == 1


async def test_retry_makes_a_waiting_job_due_now(charge):
    handle = await charge.options(delay=60).submit("o-1")

    assert await handle.retry() is ChangeAnswer.DONE
    assert await handle.status() is Status.READY


async def test_a_failed_job_is_retrying(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Failed(ErrorInfo(type="CardError", message="declined")))

    assert await handle.status() is Status.RETRYING


async def test_replay_runs_a_job_again(charge, finish):
    handle = await charge.submit("o-1")
    await finish(Succeeded(b'"paid"'))

    assert await handle.replay() is ChangeAnswer.DONE
    assert (await handle.record()).job.generation == 1


@pytest.mark.parametrize(
    "verb", ["record", "status", "result", "explain", "cancel", "hold", "unhold", "retry"]
)
async def test_an_unknown_job_is_named(app, verb):
    with pytest.raises(UnknownJob, match=NOBODY) as caught:
        await getattr(app.handle(NOBODY), verb)()

    assert caught.value.hint
