"""A folder of one's own with a store in it, and the command line as a program calls it."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest
from click.testing import CliRunner, Result

from lamplighter import runtime
from lamplighter.cli.main import main
from lamplighter.connect import connect
from lamplighter.model.ids import compose
from lamplighter.model.job import ErrorInfo, Extras, JobRecord, NewJob
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, NewWorker, TypeInfo

URL = "sqlite:///jobs.db"


class Store:
    """The store behind the commands, for setting the scene and for looking at what was done."""

    def run(self, work: Callable[[Engine], object]) -> object:
        async def opened() -> object:
            engine = connect(URL)
            await engine.open()
            try:
                return await work(engine)
            finally:
                await engine.close()

        return asyncio.run(opened())

    def submit(self, type: str = "charge", *, tags: Sequence[str] = (), **fields) -> str:
        (job_id,) = self.submit_many(1, type, extras=Extras(tags=tuple(tags)), **fields)
        return job_id

    def submit_many(self, count: int, type: str = "charge", **fields) -> list[str]:
        ids = [compose(runtime.now_ms(), 0, runtime.random_bits(70)) for _ in range(count)]
        new = [NewJob(id=one, type=type, args=b'{"order": "o-1"}', **fields) for one in ids]
        self.run(lambda engine: engine.jobs.submit(new))
        return ids

    def claim(self, engine: Engine, type: str, queue: str = "default"):
        return engine.jobs.claim(
            ClaimRequest(
                nonce=runtime.nonce(),
                worker="w-1",
                queues=((queue, 1),),
                types=(type,),
                limit=1,
                lease_ms=30_000,
            )
        )

    def running(self, type: str = "charge", **fields) -> str:
        job_id = self.submit(type, **fields)
        self.run(lambda engine: self.claim(engine, type, fields.get("queue", "default")))
        return job_id

    def succeeded(self, type: str = "charge", **fields) -> str:
        return self._settled(type, Succeeded(b'"paid"'), **fields)

    def dead(self, type: str = "charge", *, fingerprint: str = "f" * 16, **fields) -> str:
        error = ErrorInfo(
            type="CardDeclined",
            message="no money\nreally none",
            traceback="Traceback:\n  charge\nCardDeclined: no money",
            fingerprint=fingerprint,
        )
        return self._settled(type, Failed(error), **fields)

    def _settled(self, type: str, outcome, **fields) -> str:
        job_id = self.submit(type, **fields)

        async def work(engine: Engine) -> None:
            claimed = await self.claim(engine, type, fields.get("queue", "default"))
            (claim,) = claimed.claims
            await engine.jobs.settle([settle(claim, outcome, retry=Retry(max_attempts=1))])

        self.run(work)
        return job_id

    def worker(self, *types: str, name: str = "w-1") -> None:
        schema = {
            "type": "object",
            "properties": {"order": {"type": "string"}, "euros": {"type": "integer"}},
            "required": ["order"],
            "additionalProperties": False,
        }
        infos = tuple(
            TypeInfo(
                name=type_name, schema=json.dumps(schema), hash=type_name[:4], queue="payments"
            )
            for type_name in types
        )
        new = NewWorker(id=name, host="here", pid=4711, queues=("default",), slots=50, types=infos)
        self.run(lambda engine: engine.membership.join(new))

    def job(self, job_id: str) -> JobRecord:
        record = self.run(lambda engine: engine.inspector.job(job_id))
        assert isinstance(record, JobRecord)
        return record


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty working folder, and an environment that names the store in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LAMPLIGHTER_URL", URL)
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("LOGNAME", "ada")
    return tmp_path


@pytest.fixture
def lamplighter(home):
    """Call the command line; gives the result with stdout and stderr apart."""

    def call(*arguments: str, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(main, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return call


@pytest.fixture
def answer(lamplighter):
    """Call the command line with --json; gives the document."""

    def call(*arguments: str) -> dict:
        result = lamplighter(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return call


@pytest.fixture
def store(home):
    made = Store()

    async def nothing(engine: Engine) -> None:
        pass

    made.run(nothing)
    return made
