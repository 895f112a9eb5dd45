"""The verbs, each with a hundred jobs; what one needs is made ready before it is watched."""

from collections.abc import Awaitable, Callable, Sequence

from lamplighter.engines.postgres.call import Row
from lamplighter.engines.postgres.verbs import inspect, rescue
from lamplighter.engines.postgres.verbs.change import change
from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.explain import explain
from lamplighter.engines.postgres.verbs.prune import prune
from lamplighter.engines.postgres.verbs.record import record
from lamplighter.engines.postgres.verbs.renew import renew
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.model.changes import Action, table_of
from lamplighter.model.filters import Filter
from lamplighter.model.job import Claim, NewJob
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    abandoned,
    completed,
    failed,
    key,
    new_id,
    new_job,
    recording,
    request,
)
from lamplighter.port.values import Renewal, Retention
from tests.unit.postgres.plans.caller import Caller
from tests.unit.postgres.plans.filling import HOUR_MS, QUEUE, take

Act = Callable[[], Awaitable[object]]

MANY = 100
WHO = ("test", "for the test")


def _jobs(*, keyed: bool = False) -> list[NewJob]:
    return [
        new_job("mail", queue=QUEUE, tenant=f"t{n % 20}", key=key(new_id()) if keyed else None)
        for n in range(MANY)
    ]


def _some(call: Caller, table: str, where: str = "true") -> list[str]:
    """Give the ids of jobs somewhere in the middle of a table."""
    found = call.run(f"SELECT id FROM {table} WHERE {where} LIMIT {MANY}")
    return [row[0] for row in found]


async def _submit(call: Caller) -> Act:
    return lambda: submit(call, _jobs())


async def _submit_keys(call: Caller) -> Act:
    return lambda: submit(call, _jobs(keyed=True))


async def _submit_again(call: Caller) -> Act:
    jobs = _jobs(keyed=True)
    await submit(call, jobs)
    return lambda: submit(call, jobs)


async def _claim(call: Caller) -> Act:
    return lambda: take(call, MANY)


async def _claim_nothing(call: Caller) -> Act:
    asked = request(QUEUE, types=("unknown",), limit=MANY)
    return lambda: claim(call, asked)


async def _renew(call: Caller) -> Act:
    leases = [Renewal(one.job.id, one.fence) for one in await take(call, MANY)]
    return lambda: renew(call, leases, HOUR_MS)


async def _record(call: Caller) -> Act:
    said = [recording(one, "one", "two") for one in await take(call, MANY)]
    return lambda: record(call, said)


async def _settle(call: Caller) -> Act:
    ended = [completed(one) for one in await take(call, MANY)]
    return lambda: settle(call, ended)


class _Crowded:
    """A caller who always meets somebody else's lock, and sends what is to be sent then."""

    def __init__(self, call: Caller) -> None:
        self._call = call
        self.schema = call.schema

    def function(self, name: str) -> str:
        return self._call.function(name)

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
    ) -> list[Row]:
        return await self._call.rows(instead or statement, parameters)


async def _record_unlocked(call: Caller) -> Act:
    said = [recording(one, "one", "two") for one in await _running(call)]
    return lambda: record(_Crowded(call), said)


async def _settle_unlocked(call: Caller) -> Act:
    ended = [completed(one) for one in await _running(call)]
    return lambda: settle(_Crowded(call), ended)


async def _running(call: Caller) -> list[Claim]:
    """Give claims that other verbs have left behind."""
    return (await rescue.claims_of(call, "worker-1"))[:MANY]


async def _settle_again(call: Caller) -> Act:
    ended = [completed(one) for one in await take(call, MANY)]
    await settle(call, ended)
    return lambda: settle(call, ended)


async def _settle_failures(call: Caller) -> Act:
    taken = await take(call, MANY)
    ended = [failed(one) for one in taken[::2]]
    ended += [failed(one, retry=Retry(max_attempts=1)) for one in taken[1::2]]
    return lambda: settle(call, ended)


async def _rescue(call: Caller) -> Act:
    await _let_expire(call)
    return lambda: rescue.rescue(call, MANY)


async def _settle_rescued(call: Caller) -> Act:
    await _let_expire(call)
    ended = [abandoned(one.claim) for one in await rescue.rescue(call, MANY)]
    return lambda: settle(call, ended)


async def _let_expire(call: Caller) -> None:
    await take(call, MANY, lease_ms=1)
    call.run("SELECT pg_sleep(0.005)")


async def _cancel(call: Caller) -> Act:
    chosen = _some(call, "job", "state = 'waiting' AND seq % 3 = 0")
    return lambda: change(call, chosen, table_of(Action.CANCEL), *WHO)


async def _hold(call: Caller) -> Act:
    chosen = _some(call, "job", "state = 'waiting' AND hold IS NULL AND seq % 3 = 1")
    return lambda: change(call, chosen, table_of(Action.HOLD), *WHO)


async def _unhold(call: Caller) -> Act:
    chosen = _some(call, "job", "hold IS NOT NULL")
    return lambda: change(call, chosen, table_of(Action.UNHOLD), *WHO)


async def _retry(call: Caller) -> Act:
    chosen = _some(call, "job", "state = 'waiting' AND due > now_ms()")[: MANY // 2]
    chosen += _some(call, "dead")[: MANY // 2]
    return lambda: change(call, chosen, table_of(Action.RETRY), *WHO)


async def _replay(call: Caller) -> Act:
    chosen = _some(call, "done", "seq % 3 = 0")[: MANY // 2] + _some(call, "dead")[: MANY // 2]
    return lambda: change(call, chosen, table_of(Action.REPLAY), *WHO)


async def _purge(call: Caller) -> Act:
    chosen = _some(call, "done", "seq % 3 = 1")[: MANY // 2] + _some(call, "dead")[: MANY // 2]
    return lambda: change(call, chosen, table_of(Action.PURGE), *WHO)


async def _prune(call: Caller) -> Act:
    return lambda: prune(call, Retention(), MANY)


async def _prune_hour(call: Caller) -> Act:
    return lambda: prune(call, Retention(finished_ms=HOUR_MS), MANY)


async def _job(call: Caller) -> Act:
    (chosen,) = _some(call, "done")[:1]
    return lambda: inspect.job(call, chosen)


async def _explain(call: Caller) -> Act:
    (chosen,) = _some(call, "job", "tenant = 'flood' AND state = 'waiting' AND hold IS NULL")[-1:]
    return lambda: explain(call, chosen)


async def _list(call: Caller) -> Act:
    return lambda: inspect.jobs(call, Filter(), MANY, None)


async def _attempts(call: Caller) -> Act:
    ((chosen,),) = call.run("SELECT job_id FROM attempt LIMIT 1")
    return lambda: inspect.attempts(call, chosen, None, MANY)


async def _logs(call: Caller) -> Act:
    ((chosen,),) = call.run("SELECT job_id FROM log LIMIT 1")
    return lambda: inspect.logs(call, chosen, "t1", None, MANY)


ACTS: dict[str, Callable[[Caller], Awaitable[Act]]] = {
    "submit": _submit,
    "submit with keys": _submit_keys,
    "submit again": _submit_again,
    "claim": _claim,
    "claim of nothing": _claim_nothing,
    "renew": _renew,
    "record": _record,
    "record what is not locked": _record_unlocked,
    "settle": _settle,
    "settle what is not locked": _settle_unlocked,
    "settle again": _settle_again,
    "settle failures": _settle_failures,
    "rescue": _rescue,
    "settle the rescued": _settle_rescued,
    "cancel": _cancel,
    "hold": _hold,
    "unhold": _unhold,
    "retry": _retry,
    "replay": _replay,
    "purge": _purge,
    "prune": _prune,
    "prune of an hour": _prune_hour,
    "job": _job,
    "explain": _explain,
    "list": _list,
    "attempts": _attempts,
    "logs": _logs,
}
