"""The verbs, each with a hundred jobs; what one needs is made ready before it is watched."""

from collections.abc import Awaitable, Callable

from lamplighter.engines.postgres.verbs import inspect, rescue
from lamplighter.engines.postgres.verbs.cancel import cancel
from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.explain import explain
from lamplighter.engines.postgres.verbs.hold import hold
from lamplighter.engines.postgres.verbs.prune import prune
from lamplighter.engines.postgres.verbs.purge import purge
from lamplighter.engines.postgres.verbs.record import record
from lamplighter.engines.postgres.verbs.renew import renew
from lamplighter.engines.postgres.verbs.replay import replay
from lamplighter.engines.postgres.verbs.retry import retry
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.engines.postgres.verbs.unhold import unhold
from lamplighter.model.job import NewJob
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
from lamplighter.port.values import JobFilter, Renewal, Retention
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
    return lambda: cancel(call, chosen, *WHO)


async def _hold(call: Caller) -> Act:
    chosen = _some(call, "job", "state = 'waiting' AND hold IS NULL AND seq % 3 = 1")
    return lambda: hold(call, chosen, *WHO)


async def _unhold(call: Caller) -> Act:
    chosen = _some(call, "job", "hold IS NOT NULL")
    return lambda: unhold(call, chosen, *WHO)


async def _retry(call: Caller) -> Act:
    chosen = _some(call, "job", "state = 'waiting' AND due > now_ms()")[: MANY // 2]
    chosen += _some(call, "dead")[: MANY // 2]
    return lambda: retry(call, chosen, *WHO)


async def _replay(call: Caller) -> Act:
    chosen = _some(call, "done", "seq % 3 = 0")[: MANY // 2] + _some(call, "dead")[: MANY // 2]
    return lambda: replay(call, chosen, *WHO)


async def _purge(call: Caller) -> Act:
    chosen = _some(call, "done", "seq % 3 = 1")[: MANY // 2] + _some(call, "dead")[: MANY // 2]
    return lambda: purge(call, chosen, *WHO)


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
    return lambda: inspect.jobs(call, JobFilter(), MANY, None)


async def _attempts(call: Caller) -> Act:
    ((chosen,),) = call.run("SELECT job_id FROM attempt LIMIT 1")
    return lambda: inspect.attempts(call, chosen)


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
    "settle": _settle,
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
