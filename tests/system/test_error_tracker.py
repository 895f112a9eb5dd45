"""A real error tracker gets what it needs from hooks and from middleware."""

import json

import pytest

from lamplighter import runtime
from lamplighter.model.ids import compose
from lamplighter.model.job import Extras, NewJob
from lamplighter.port.store import queue_topic
from tests.system.conftest import until

CARD = "4111-2222-3333"


async def events_of(world, count: int) -> dict[str, dict]:
    def found() -> list[str]:
        path = world.runs.path
        return path.read_text().splitlines() if path.exists() else []

    await until(lambda: len(found()) >= count)
    assert CARD not in "\n".join(found())
    return {event["tags"]["by"]: event for event in map(json.loads, found())}


async def submit(world, type: str) -> str:
    job = NewJob(
        id=compose(runtime.now_ms(), 0, runtime.random_bits(70)),
        type=type,
        args=json.dumps({"order": "o-1", "card": CARD}).encode(),
        extras=Extras(metadata={"request": "r-7"}),
    )
    await world.engine.jobs.submit([job])
    await world.engine.wakeup.notify(queue_topic("default"))
    return job.id


@pytest.mark.parametrize("type", ["charge", "charge_in_thread", "charge_alone"])
async def test_it_gets_the_exception_the_arguments_and_the_metadata(world, type):
    await world.worker("tests.system.tracked_program:app")
    job_id = await submit(world, type)

    events = await events_of(world, 2)

    for event in events.values():
        assert event["tags"]["job"] == job_id
        assert event["contexts"]["job"]["arguments"] == {"order": "o-1", "card": "•••"}
        assert event["contexts"]["job"]["metadata"] == {"request": "r-7"}
    assert set(events) == {"middleware", "hook"}
    with_exception = [events["middleware"]] + ([events["hook"]] if type != "charge_alone" else [])
    for event in with_exception:
        (raised,) = event["exception"]["values"]
        assert (raised["type"], raised["value"]) == ("LookupError", "there is no order o-1")
        assert raised["stacktrace"]["frames"][-1]["function"] == "look_up"
    if type == "charge_alone":
        # The exception stays in the process that ran it; its text does not.
        assert "there is no order o-1" in events["hook"]["message"]
        assert "look_up" in events["hook"]["message"]
