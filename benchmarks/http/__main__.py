"""`python -m benchmarks.http [--rounds 3] [--seconds 5] [--connections 64] [--processes 1]`.

Ours, FastAPI with Celery and FastAPI with arq take submissions of one job each, on one Valkey or
Redis server, one at a time and in turn; then ours takes batches.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.cpu import Others
from benchmarks.engines import working_folder
from benchmarks.errors import BenchmarkError
from benchmarks.http import page
from benchmarks.http.load import Load, Order
from benchmarks.http.page import Found, Taken
from benchmarks.http.sides import SUBMISSION, Service, Side
from benchmarks.peers.redis_arena import RedisArena

BUILD = Path(__file__).resolve().parent.parent.parent / "build"
OURS = Side(name="Lamplighter", counted="return redis.call('DBSIZE')")
WARM_SECONDS = 1.0
BATCH = 1_000
BATCH_CONNECTIONS = 2


def main(arguments: list[str]) -> int:
    """Measure, print, and exit with 1 when something that has to be so is not."""
    given = _parser().parse_args(arguments)
    sides = [side for side in _sides(given.build) if side.name.lower() in given.only]
    missing = [side.name for side in sides if not side.python.exists()]
    if missing:
        print(
            f"error: not installed: {', '.join(missing)}\nhint: run `make bench-http`, which "
            "installs them, or name the folder by --build",
            file=sys.stderr,
        )
        return 2
    # Ended from outside, the servers still have to go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = _measure(sides, given)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    print(f"\n{page.written(run)}")
    return int(not all(must.kept for must in page.musts(run)))


def _sides(build: Path) -> list[Side]:
    return [
        OURS,
        Side(
            name="FastAPI+Celery",
            counted="return redis.call('LLEN', 'celery')",
            python=build / "peers" / "bin" / "python",
            module="benchmarks.http.with_celery:app",
        ),
        Side(
            name="FastAPI+arq",
            counted="return redis.call('ZCARD', 'arq:queue')",
            python=build / "peers-arq" / "bin" / "python",
            module="benchmarks.http.with_arq:app",
        ),
    ]


def _measure(sides: Sequence[Side], given: argparse.Namespace) -> page.Run:
    others = Others()
    found = {side.name: Found(side.name) for side in sides}
    with working_folder(given.folder) as folder:
        arena = RedisArena(folder)
        try:
            for number in range(given.rounds):
                for side in sides if number % 2 else reversed(sides):
                    found[side.name].most.append(_singles(arena, side, given))
            for side in sides:
                rate = given.rate or found[side.name].per_s / 2
                found[side.name].half = _singles(arena, side, given, rate)
            batches = [_batches(arena, given) for _ in range(given.rounds if OURS in sides else 0)]
            server = arena.describe()
        finally:
            arena.close()
    return page.Run(
        found=list(found.values()),
        batches=batches,
        server=server,
        others=others.share(),
        connections=given.connections,
        processes=given.processes,
    )


def _singles(
    arena: RedisArena, side: Side, given: argparse.Namespace, rate: float | None = None
) -> Taken:
    with arena.database() as database, side.serving(database, given.processes) as service:
        request = service.request("/v1/jobs", SUBMISSION)
        taken = _take(service, request, given.connections, given.seconds, rate)
        _check_stored(side, service, taken.load.requests)
    what = "" if rate is None else f" at {rate:,.0f}/s"
    print(f"{side.name}{what}: {taken}", flush=True)
    return taken


def _batches(arena: RedisArena, given: argparse.Namespace) -> Taken:
    with arena.database() as database, OURS.serving(database, given.processes) as service:
        request = service.request("/v1/jobs:batch", [SUBMISSION] * BATCH)
        taken = _take(service, request, BATCH_CONNECTIONS, given.seconds, None, jobs=BATCH)
        _check_stored(OURS, service, taken.jobs)
    print(f"batches: {taken}", flush=True)
    return taken


def _take(
    service: Service,
    request: str,
    connections: int,
    seconds: float,
    rate: float | None,
    *,
    jobs: int = 1,
) -> Taken:
    def order(seconds: float) -> Order:
        return Order(
            host="127.0.0.1",
            port=service.port,
            request=request,
            connections=connections,
            seconds=seconds,
            rate=rate,
        )

    _carry_out(service, order(WARM_SECONDS))
    before = service.cpu_ns()
    load = _carry_out(service, order(seconds))
    after = service.cpu_ns()
    spent = {role: after[role] - before[role] for role in before}
    return Taken(load, load.requests * jobs, spent)


def _carry_out(service: Service, order: Order) -> Load:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.http.load"],
        input=json.dumps(asdict(order)),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        code = service.process.poll()
        state = "still runs" if code is None else f"has ended with code {code}"
        raise BenchmarkError(f"the load was not taken: {ended.stderr.strip()}; the service {state}")
    return Load(**json.loads(ended.stdout))


def _check_stored(side: Side, service: Service, jobs: int) -> None:
    """What was answered must be there; the warm-up left more."""
    if (stored := service.stored(side.counted)) < jobs:
        raise BenchmarkError(f"{side.name} answered {jobs:,} jobs and stored {stored:,}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of one round")
    parser.add_argument("--connections", type=int, default=64, metavar="N")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="of each service")
    parser.add_argument("--rate", type=float, help="of the steady load; else half of the most")
    parser.add_argument(
        "--only",
        type=lambda text: text.lower().split(","),
        default=["lamplighter", "fastapi+celery", "fastapi+arq"],
        metavar="NAMES",
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="where the peers are installed")
    parser.add_argument("--folder", metavar="DIR", help="where the server's files are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
