"""What was billed, held against what should have been, bill by bill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tests.year.tenants import Tenant

SHOWN = 10


class Ledger:
    """The bills of some tenants: each must be the next one of its tenant, at its exact instant."""

    def __init__(self, tenants: Sequence[Tenant], wanted: Mapping[str, Sequence[int]]) -> None:
        self.bills = 0
        self.faults: list[str] = []
        self._wanted = wanted
        self._billed = {tenant.number: 0 for tenant in tenants}

    @property
    def expected(self) -> int:
        """How many bills there have to be."""
        return sum(len(self._wanted[Tenant(number).zone]) for number in self._billed)

    def bill(self, tenant: Tenant, due_ms: int) -> None:
        """Write down a bill."""
        self.bills += 1
        wanted, place = self._wanted[tenant.zone], self._billed[tenant.number]
        self._billed[tenant.number] = place + 1
        if place >= len(wanted):
            self.fault(
                f"{tenant.name} in {tenant.zone}: billed for {_shown(due_ms)}, after the end"
            )
        elif due_ms != wanted[place]:
            shown, right = _shown(due_ms), _shown(wanted[place])
            self.fault(f"{tenant.name} in {tenant.zone}: billed for {shown} instead of {right}")

    def fault(self, text: str) -> None:
        """Write down that something is wrong."""
        self.faults.append(text)

    def close(self) -> None:
        """Look for tenants who have not got all their bills."""
        for number, billed in self._billed.items():
            tenant = Tenant(number)
            if billed != (wanted := len(self._wanted[tenant.zone])):
                self.fault(f"{tenant.name} in {tenant.zone}: {billed} bills instead of {wanted}")


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
