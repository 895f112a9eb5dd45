"""What counts as harm to a process, and what does not."""

import asyncio
import os

import pytest

from lamplighter.worker.vitals import Vitals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "release"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


async def test_a_folder_that_somebody_else_renames_or_deletes_is_no_harm(folder):
    vitals = Vitals()
    vitals.begin(asyncio.get_running_loop())

    folder.rename(folder.with_name("old"))
    assert vitals.harm() == ""
    folder.with_name("old").rmdir()
    assert vitals.harm() == ""


async def test_another_working_directory_is_harm(folder):
    vitals = Vitals()
    vitals.begin(asyncio.get_running_loop())

    os.chdir("/")

    assert "the working directory" in vitals.harm()
