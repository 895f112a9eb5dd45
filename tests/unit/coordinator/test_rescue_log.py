"""Failures that the rescue logs: what was held back is told, and the limit is that of a process."""

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.coordinator import Rescuer
from lamplighter.observability import failures
from lamplighter.observability.failures import IN_FULL, process_log
from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.worker.burial import Burial
from tests.unit.server.clocks import Clock

SETTINGS = Settings()


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


async def lose(engine, count: int) -> None:
    """Let jobs be claimed a minute ago by somebody who has not been heard of since."""
    with runtime.install(Clock(-60.0)):
        await submit(engine, *(new_job() for _ in range(count)))
        await claim(engine, count, lease_ms=1)


def held_back(caplog) -> list[str]:
    return [one.getMessage() for one in caplog.records if "more like it" in one.getMessage()]


@pytest.mark.parametrize("end", ["tick", "stop"])
async def test_what_was_held_back_of_lost_jobs_is_told(engine, caplog, monkeypatch, end):
    await lose(engine, IN_FULL + 2)
    rescuer = Rescuer(engine, SETTINGS)
    await rescuer.step()
    assert held_back(caplog) == []

    if end == "stop":
        await rescuer.stop()
    else:
        monkeypatch.setattr(process_log(), "_ends_at", 1e-9)
        monkeypatch.setattr(failures, "WINDOW", 0.0)
        await rescuer.step()

    (told,) = held_back(caplog)
    assert told.startswith("2 more like it were not logged: work: ")


async def test_all_parts_of_a_process_write_to_one_log_of_failures(engine, caplog):
    for _ in range(2):
        await lose(engine, IN_FULL)
        await Rescuer(engine, SETTINGS).step()
    assert Burial(engine, SETTINGS)._failures is process_log()
    process_log().close()

    (told,) = held_back(caplog)
    assert told.startswith(f"{IN_FULL} more like it")
