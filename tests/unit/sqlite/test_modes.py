"""Only the owner may use the files of a store, whatever the umask, unless an operator says so."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from lamplighter.connect import connect
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance.builders import new_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lamplighter.port.store import Engine

ENDINGS = ("", "-wal", "-shm", "-next", "-write")


def modes(path: Path) -> dict[str, int]:
    return {end: path.with_name(path.name + end).stat().st_mode & 0o777 for end in ENDINGS}


@pytest.fixture(params=[0o000, 0o022, 0o177, 0o377], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
async def test_new_files_are_for_their_owner_only(path: Path) -> None:
    engine = connect(f"sqlite:///{path}")
    await engine.open()
    await engine.jobs.submit([new_job()])
    await engine.inspector.counts()

    assert modes(path) == dict.fromkeys(ENDINGS, 0o600)
    await engine.close()


async def test_what_lies_beside_gets_no_wider_than_the_database(path: Path) -> None:
    first = connect(f"sqlite:///{path}")
    await first.open()
    await first.jobs.submit([new_job()])
    for end in ENDINGS[1:]:
        path.with_name(path.name + end).chmod(0o644)

    second = connect(f"sqlite:///{path}")
    await second.open()

    assert modes(path) == dict.fromkeys(ENDINGS, 0o600)
    await second.close()
    await first.close()


async def test_a_group_that_an_operator_lets_in_may_use_all_files(path: Path) -> None:
    engine = connect(f"sqlite:///{path}")
    await engine.open()
    await engine.close()
    path.chmod(0o660)
    for end in ENDINGS[1:]:
        path.with_name(path.name + end).unlink(missing_ok=True)

    await engine.open()
    await engine.jobs.submit([new_job()])

    assert modes(path) == dict.fromkeys(ENDINGS, 0o660)
    await engine.close()


@pytest.mark.parametrize("end", ENDINGS)
async def test_doctor_names_every_file_that_is_open_to_all_and_its_cure_cures(
    engine: Engine, path: Path, end: str
) -> None:
    await engine.jobs.submit([new_job()])
    path.with_name(path.name + end).chmod(0o644)

    (found,) = [f for f in (await engine.check_up()).findings if f.check == "permissions"]

    assert found.grade is Grade.NOTE
    assert f"{path}{end}" in found.text
    subprocess.run(shlex.split(found.remedy), check=True)  # noqa: ASYNC221 - it is short
    assert modes(path) == dict.fromkeys(ENDINGS, 0o600) | {end: 0o640}
    (found,) = [f for f in (await engine.check_up()).findings if f.check == "permissions"]
    assert found.grade is Grade.OK
