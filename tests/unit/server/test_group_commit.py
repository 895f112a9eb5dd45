"""Group commit on SQLite."""

import asyncio

from lamplighter import App
from lamplighter.client import Client
from lamplighter.model.errors import StoreError
from lamplighter.server.group_commit import GroupCommit
from tests.unit.server.group_commits import *  # noqa: F403


async def test_a_store_that_cannot_be_opened_is_told_to_all(tmp_path):
    app = App(f"sqlite:///{tmp_path}/missing/folder/jobs.db")
    group = GroupCommit(Client(app.settings))
    known = App(f"sqlite:///{tmp_path}/jobs.db")
    calls = [await known.call("charge", {}) for _ in range(3)]
    answers = await asyncio.gather(
        *(group.submit(call.new) for call in calls), return_exceptions=True
    )
    await known.close()
    assert all(isinstance(answer, StoreError) for answer in answers)
