"""Reads: what the store knows of jobs, queues, tenants, types and workers.

Each docstring is a contract, as in `port/store.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.port.values import COUNT_LIMIT, SCAN_LIMIT
from lamplighter.port.verbs import Part

if TYPE_CHECKING:
    from lamplighter.model.filters import Filter
    from lamplighter.model.job import Attempt, JobRecord
    from lamplighter.port.values import (
        DeadGroups,
        Explanation,
        JobPage,
        LogPiece,
        QueueInfo,
        TenantInfo,
        TypeRow,
        WorkerInfo,
    )


class Inspector(Part):
    """Reads only: whoever holds this cannot move a job."""

    async def job(self, job_id: str) -> JobRecord | None:
        """Return one job, or None."""
        return await self._call("job", job_id)

    async def jobs(self, which: Filter, *, limit: int, cursor: str | None = None) -> JobPage:
        """List jobs, newest first. A page may be short and still have a cursor."""
        return await self._call("jobs", which, limit, cursor)

    async def explain(self, job_id: str) -> Explanation | None:
        """Say why a job is not running, the most decisive reason first.

        A waiting suspect has that among its reasons, and so has a running job whose timeout has
        passed: its own, or else the longest that is published for its type. Of a running job it
        says whether its worker is suspect or dead, when the lease ended, and if no worker is alive
        to give the job back. A job that only some versions of its type take, or none, has that
        too, with what the live versions take.
        """
        return await self._call("explain", job_id)

    async def counts(self) -> dict[str, int]:
        """Count jobs per state, each exact up to 10,000."""
        return await self._call("counts")

    async def queues(self, *, most: int = COUNT_LIMIT) -> list[QueueInfo]:
        """List queues by name; their waiting jobs are counted up to ``most``.

        With 0 no waiting job is looked at, for who asks for the names alone.
        """
        return await self._call("queues", most)

    async def queue(self, name: str) -> QueueInfo | None:
        """Return one queue as ``queues`` has it, or None."""
        return await self._call("queue", name)

    async def tenants(self) -> list[TenantInfo]:
        """List tenants that have settings, waiting or running jobs, by name; at most 1,000."""
        return await self._call("tenants")

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return one tenant as ``tenants`` has it, however many there are, or None."""
        return await self._call("tenant", name)

    async def held(self, tenant: str, *, most: int) -> int:
        """Count the waiting jobs of a tenant that have a hold of their own, up to ``most``."""
        return await self._call("held", tenant, most)

    async def types(self) -> list[TypeRow]:
        """List published job types by name, one row per version.

        Each names the slots that live workers hold which know it, and the queues served there.
        """
        return await self._call("types")

    async def workers(self) -> list[WorkerInfo]:
        """List workers, oldest first; of dead ones no handler counts as running."""
        return await self._call("workers")

    async def attempts(
        self, job_id: str, *, until: int | None = None, limit: int = 100
    ) -> list[Attempt]:
        """Return the newest attempts of a job in all its lives, ``limit`` of them, oldest first.

        With ``until`` those whose lease has that number or a lower one. Those that failed, those
        that ended the job, and the present one, which is `running`. One after which the job waits
        again without a failure leaves no trace. One that ended the job as cancelled is called
        `cancelled`, unless it failed. Its number is the one its handler was told: it counts the
        handler's own failures, so that several may have the same.
        """
        return await self._call("attempts", job_id, until, limit)

    async def logs(
        self,
        job_id: str,
        *,
        tenant: str | None = None,
        after: tuple[int, int] | None = None,
        limit: int = 100,
    ) -> list[LogPiece]:
        """Return pieces of a job's log, oldest first: by lease number, then by their own.

        Only those behind ``after`` (lease, number), and only if the job is of ``tenant``, when
        these are given. An unknown job has none.
        """
        return await self._call("logs", job_id, tenant, after, limit)

    async def dead_groups(self, which: Filter, *, most: int = SCAN_LIMIT) -> DeadGroups:
        """Group dead letters by type and fingerprint, most frequent first.

        The newest ``most`` of the store, or of each of its shards, are looked at, and the answer
        tells whether there are older ones.
        """
        return await self._call("dead_groups", which, most)
