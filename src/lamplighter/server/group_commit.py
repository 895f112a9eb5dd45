"""Group commit: single submissions that come at the same time are written together.

What arrives while one batch is being written forms the next. There is no timer: a submission that
comes alone is written at once, and the more come, the larger the batches are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.model.errors import StoreError
from lamplighter.model.job import NewJob
from lamplighter.port.values import SubmitAnswer, Submitted

AT_ONCE = 2
"""Batches under way at the same time: while the store writes one, the next is made ready."""
BATCH_BYTES = 1 << 20
"""Bytes of arguments after which a batch takes no more, so that no single write lasts long."""
LAST_SECONDS = 5.0
"""How long a process that ends waits for its last batches; requests have had their time."""

Waiting = tuple[NewJob, "asyncio.Future[Submitted]"]


class GroupCommit:
    """Writes the submissions of one process, those that wait together in one batch.

    A refusal that is about one job is told to whoever submitted that job, and keeps nobody else's
    out. Whoever stops waiting takes back only what has not been begun to be written.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: deque[Waiting] = deque()
        self._writers: set[asyncio.Task[None]] = set()
        self._writing = 0
        """Writers that will look once more for who waits, before they end."""

    async def submit(self, job: NewJob) -> Submitted:
        """Store a job; returns when it is safe."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((job, answer))
        if self._writing < AT_ONCE:
            self._writing += 1
            writer = runtime.spawn(self._write_all(), name="group-commit")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return await answer

    async def close(self, seconds: float = LAST_SECONDS) -> None:
        """Wait until everything that was submitted is written, but not for ever."""
        if self._writers:
            _, late = await asyncio.wait(self._writers, timeout=seconds)
            for writer in late:
                writer.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    async def _write_all(self) -> None:
        """Write batch after batch, until nobody waits."""
        try:
            most = (await self._client.engine()).capabilities.max_batch
            while batch := self._next(most):
                await self._write(batch)
        except Exception as error:  # noqa: BLE001 - whoever waits is told, whatever it is
            _refuse(self._next(len(self._waiting)), error)
        finally:
            # Before anybody else has a turn: whoever comes now begins another.
            self._writing -= 1

    def _next(self, most: int) -> list[Waiting]:
        """Take those who have waited longest, as many as one write should hold."""
        batch: list[Waiting] = []
        size = 0
        while self._waiting and len(batch) < most and size < BATCH_BYTES:
            job, answer = self._waiting.popleft()
            if not answer.done():
                batch.append((job, answer))
                size += len(job.args)
        return batch

    async def _write(self, batch: Sequence[Waiting]) -> None:
        """Write a batch and tell everybody; one that is refused is halved to find whom it is about.

        What the store says of itself is meant for all.
        """
        try:
            answers = await self._client.submit([job for job, _ in batch])
        except Exception as error:  # noqa: BLE001 - whoever waits is told, whatever it is
            if len(batch) == 1 or isinstance(error, StoreError):
                _refuse(batch, error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
        except BaseException:
            for _, answer in batch:
                answer.cancel()
            raise
        else:
            for (job, answer), said in zip(batch, answers, strict=True):
                if not answer.done():
                    answer.set_result(_ours(job, said))


def _refuse(batch: Sequence[Waiting], error: Exception) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(error)


def _ours(job: NewJob, said: Submitted) -> Submitted:
    """Tell apart who was there before: a job that meets its own id was stored by us just now."""
    if said.answer is SubmitAnswer.ALREADY and said.id == job.id:
        return Submitted(job.id, SubmitAnswer.CREATED)
    return said
