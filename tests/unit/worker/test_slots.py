"""Jobs in processes of their own: what they come to, and what their deaths mean."""

import asyncio
import dataclasses
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from lamplighter.connect import connect
from lamplighter.model import outcome as model
from lamplighter.model.job import Claim, Delivery, ErrorInfo, Extras, Fence, Job, Level
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Failed,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import Retry
from lamplighter.worker import descendants, slot_line
from lamplighter.worker import slots as slots_module
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.slot_line import claim_of, do, done, outcome_of
from tests.unit.worker import slot_program
from tests.unit.worker.fakes import until
from tests.unit.worker.slot_pool import is_alive, lines, pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def said(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def gone(pids: Iterable[int]) -> None:
    """See that processes have been killed; the system may need a moment to end them."""
    left = list(pids)
    await until(lambda: not any(map(is_alive, left)), 10)


# ── what a handler comes to ──────────────────────────────────────────────────────────────────


async def test_a_function_and_a_coroutine_give_their_results():
    async with pool() as p:
        assert await p.outcome("add", a=1, b=2) == Succeeded(b"3")
        assert await p.outcome("add_later", a=2, b=2) == Succeeded(b"4")


async def test_a_suspect_of_any_type_runs_in_the_main_thread_of_an_ordinary_process():
    async with pool() as p:
        run = p.start("shared")
        assert run.isolated
        assert not run.entered
        assert not p.sent
        assert await p.end(run) == Succeeded(f'"{run.claim.job.id} True"'.encode())
        assert run.entered
        assert p.sent == [run]


async def test_a_failure_has_a_traceback_that_begins_in_the_handler():
    async with pool() as p:
        outcome = await p.outcome("fails")

    assert isinstance(outcome, Failed)
    assert outcome.error.type == "ValueError"
    assert "slot_program.py" in outcome.error.traceback
    assert "worker/slot.py" not in outcome.error.traceback


async def test_secret_arguments_are_hidden_in_errors_and_in_what_is_printed():
    async with pool() as p:
        run = p.start("leaks", secret="open sesame")
        outcome = await p.end(run)

    assert outcome.error.message == "no such thing •••"
    assert "sesame" not in outcome.error.traceback
    assert [line.text for line in lines(run)] == ["the secret is •••"]


async def test_a_handler_rejects_and_snoozes():
    async with pool() as p:
        assert await p.outcome("rejects") == Rejected("never")
        assert await p.outcome("snoozes") == Snoozed(12.5)


async def test_arguments_that_do_not_fit_are_a_failure():
    async with pool() as p:
        outcome = await p.outcome("add", a="x", b=1)

    assert outcome.error.type == "DoesNotFit"


async def test_a_handler_that_exits_has_failed_and_its_process_lives_on():
    async with pool(limit=1) as p:
        first = await p.result("pid")
        outcome = await p.outcome("exits")
        assert outcome.error.type == "SystemExit"
        assert await p.outcome("exits_in_a_task") == Succeeded(b'"still here"')
        assert await p.result("pid") == first


@pytest.mark.parametrize("kind", ["surrogate", "bytes", "object", "nan"])
async def test_an_odd_result_is_a_success_without_a_result(kind: str):
    async with pool() as p:
        outcome = await p.outcome("odd", kind=kind)

    assert isinstance(outcome, Succeeded)
    assert outcome.result is not None or "was not kept" in outcome.note


async def test_what_is_provided_is_made_once_per_process_and_closed_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEST_CLOSED", str(tmp_path / "closed"))
    async with pool(limit=1) as p:
        assert await p.result("served") == 1
        assert await p.result("served") == 2
        pid = await p.result("pid")

    assert said(tmp_path / "closed") == str(pid)


async def test_middleware_runs_around_both_kinds_of_handlers():
    async with pool("around", limit=1) as p:
        plain = p.start("inner", a=3)
        assert await p.end(plain) == Succeeded(b"6")
        later = p.start("inner_later", a=4)
        assert await p.end(later) == Succeeded(b"8")

    for run, name in ((plain, "inner"), (later, "inner_later")):
        assert [line.text for line in lines(run)] == [f"before {name}", "after Succeeded"]


async def test_a_handler_submits_to_the_store_of_its_worker_wherever_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    async with pool(url="sqlite:///jobs.db") as p:
        ids = [await p.result("submits"), await p.result("submits_on_the_loop")]

    store = connect(f"sqlite:///{tmp_path}/jobs.db")
    await store.open()
    try:
        for job_id in ids:
            assert (await store.inspector.job(job_id)).job.type == "add"
    finally:
        await store.close()


async def test_what_is_said_arrives_in_order_with_the_end():
    async with pool() as p:
        run = p.start("talks")
        await p.end(run)

    journal = run.notes.take()
    assert journal.progress.done == 1
    assert journal.progress.note == "half"
    assert run.progressed_at >= run.started_at
    run.notes.put(journal)
    assert [(line.level, line.text) for line in lines(run)] == [
        ("out", "one"),
        ("warning", "two"),
        ("err", "three"),
        ("out", "four"),
    ]


async def test_what_is_said_arrives_while_the_handler_runs():
    async with pool() as p:
        run = p.start("talks", pause=30.0)
        await until(lambda: run.notes is not None, 10)
        assert not p.ended
        assert run.progressed_at
        assert [line.text for line in lines(run)] == ["one", "two", "three"]
        p.slots.stop(run, Stop.CANCEL)
        assert await p.end(run) == Cancelled()
        assert lines(run) == []


# ── stop ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("type", ["waits", "waits_on_the_loop", "spins"])
async def test_a_handler_sees_that_its_time_is_over(type: str, tmp_path: Path):
    path = tmp_path / "seen"
    async with pool() as p:
        run = p.start(type, path=str(path), timeout=3.0)
        await until(lambda: said(path), 10)
        p.slots.stop(run, Stop.TIMEOUT)
        outcome = await p.end(run)
        assert await p.outcome("add", a=1, b=1) == Succeeded(b"2")

    assert isinstance(outcome, TimedOut)
    assert outcome.error.message == "still running after its timeout of 3 s"
    assert said(path) == "TimedOut"


async def test_a_handler_without_progress_is_told_so(tmp_path: Path):
    async with pool() as p:
        run = p.start("stalls", path=str(tmp_path / "begun"))
        await until(lambda: said(tmp_path / "begun"), 10)
        run.soft_end = run.started_at + 5
        p.slots.stop(run, Stop.TIMEOUT)
        outcome = await p.end(run)

    assert outcome.error.message == "no progress for 2 s, its `stalled_after`"


@pytest.mark.parametrize(
    ("why", "outcome"), [(Stop.CANCEL, Cancelled()), (Stop.DRAIN, Released(started=True))]
)
@pytest.mark.parametrize("type", ["waits", "waits_on_the_loop"])
async def test_a_handler_is_cancelled(why: Stop, outcome: object, type: str, tmp_path: Path):
    path = tmp_path / "seen"
    async with pool() as p:
        run = p.start(type, path=str(path))
        await until(lambda: said(path), 10)
        p.slots.stop(run, why)
        assert await p.end(run) == outcome

    assert said(path) == {"waits": "CancelRequested"}.get(type, "CancelledError")


async def test_a_function_inside_of_middleware_is_cancelled(tmp_path: Path):
    path = tmp_path / "seen"
    async with pool("around") as p:
        run = p.start("inner_waits", path=str(path))
        await until(lambda: said(path), 10)
        p.slots.stop(run, Stop.CANCEL)
        assert await p.end(run) == Cancelled()

    assert [line.text for line in lines(run)] == ["before inner_waits", "after Cancelled"]


async def test_a_command_may_end_in_peace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "said"
    monkeypatch.setenv("TEST_FILE", str(path))
    async with pool() as p:
        run = p.start("polite")
        await until(lambda: said(path) == "up\n", 10)
        p.slots.stop(run, Stop.CANCEL)
        assert await p.end(run) == Cancelled()

    assert said(path) == "bye\n"


async def test_the_flag_of_the_context_turns_on(tmp_path: Path):
    path = tmp_path / "seen"
    async with pool() as p:
        run = p.start("watches", path=str(path))
        await until(lambda: said(path), 10)
        p.slots.stop(run, Stop.CANCEL)
        # It came to its end in spite of the cancel, so its effect happened.
        assert await p.end(run) == Succeeded(b'"True"')


async def test_a_stop_meets_its_own_run_and_never_the_next_one():
    async with pool(limit=1) as p:
        await p.outcome("pid")
        for _ in range(100):
            run = p.start("add", a=1, b=1)
            p.slots.stop(run, Stop.CANCEL)
            assert await p.end(run) in {Cancelled(), Succeeded(b"2")}
            assert await p.outcome("add", a=2, b=2) == Succeeded(b"4")


async def test_a_handler_that_ignores_its_timeout_is_killed_with_all_its_descendants(
    tmp_path: Path,
):
    path = tmp_path / "pids"
    async with pool() as p:
        run = p.start("stubborn", path=str(path), timeout=0.5)
        await until(lambda: said(path), 10)
        pids = [int(pid) for pid in said(path).split()]
        assert len(pids) == 4
        assert all(map(is_alive, pids))
        p.slots.stop(run, Stop.TIMEOUT)
        run.hard_end = 0.0
        outcome = await p.end(run)
        await gone(pids)

    assert isinstance(outcome, TimedOut)
    assert "its process was killed" in outcome.error.message


async def test_a_cancelled_handler_that_has_to_be_killed_is_cancelled(tmp_path: Path):
    path = tmp_path / "pids"
    async with pool() as p:
        run = p.start("stubborn", path=str(path))
        await until(lambda: said(path), 10)
        p.slots.stop(run, Stop.CANCEL)
        run.hard_end = 0.0
        assert await p.end(run) == Cancelled()


async def test_a_lost_run_is_killed_and_comes_to_nothing(tmp_path: Path):
    path = tmp_path / "pids"
    async with pool() as p:
        run = p.start("stubborn", path=str(path))
        await until(lambda: said(path), 10)
        p.slots.stop(run, Stop.CANCEL)
        p.slots.stop(run, Stop.LOST)
        assert await p.end(run) is None
        await gone(map(int, said(path).split()))


@pytest.mark.parametrize(
    ("why", "outcome"),
    [
        (Stop.CANCEL, Cancelled()),
        (Stop.TIMEOUT, Released()),
        (Stop.DRAIN, Released()),
        (Stop.LOST, None),
    ],
)
async def test_a_run_is_stopped_while_its_process_starts_which_serves_the_next(
    why: Stop, outcome: object
):
    async with pool(limit=1) as p:
        run = p.start("add", a=1, b=1)
        p.slots.stop(run, why)
        assert p.ended == {run.number: [outcome]}
        await until(lambda: p.slots._idle, 10)
        pids = p.slots.pids
        assert await p.result("pid") == pids[0]


async def test_a_run_that_nobody_vouches_for_any_more_is_not_begun():
    async with pool() as p:
        p.slots._may_begin = lambda run: False
        assert await p.outcome("add", a=1, b=1) == Released()
        assert p.slots.room == 2
        assert not p.sent


# ── a process before its job ─────────────────────────────────────────────────────────────────


async def test_a_prepared_run_begins_when_it_is_started():
    async with pool(limit=1) as p:
        run = p.prepare("add", a=1, b=1)
        assert p.slots.room == 0
        await until(lambda: p.ready, 10)
        p.slots.tick(1e12)  # its time has not begun
        assert (p.ready, p.sent, p.ended) == ([run], [], {})

        p.slots.start(run)
        assert p.sent == [run]
        assert await p.end(run) == Succeeded(b"2")


async def test_an_idle_process_is_ready_for_a_run_at_once():
    async with pool(limit=1) as p:
        pid = await p.result("pid")
        run = p.prepare("pid")
        assert p.ready == [run]
        p.slots.start(run)
        assert msgspec.json.decode((await p.end(run)).result) == pid


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize(
    ("why", "outcome"), [(Stop.CANCEL, Cancelled()), (Stop.DRAIN, Released()), (Stop.LOST, None)]
)
async def test_a_prepared_run_is_stopped_and_its_process_serves_the_next(
    why: Stop, outcome: object, *, ready: bool
):
    async with pool(limit=1) as p:
        run = p.prepare("add", a=1, b=1)
        await until(lambda: p.ready or not ready, 10)
        p.slots.stop(run, why)
        assert p.ended == {run.number: [outcome]}
        await until(lambda: p.slots.idle, 10)
        pids = p.slots.pids
        assert await p.result("pid") == pids[0]


async def test_a_prepared_run_that_nobody_vouches_for_any_more_is_given_back():
    async with pool() as p:
        p.slots._may_begin = lambda run: False
        assert await p.end(p.prepare("add", a=1, b=1)) == Released()
        assert (p.ready, p.sent) == ([], [])
        await until(lambda: p.slots.idle)


async def test_a_used_process_that_dies_before_its_prepared_run_is_sent_costs_that_nothing():
    async with pool(limit=1) as p:
        pid = await p.result("pid")
        run = p.prepare("add", a=1, b=1)
        os.kill(pid, signal.SIGABRT)
        await until(lambda: p.told, 10)
        p.slots.start(run)  # its mark has come meanwhile
        assert await p.end(run) == Released()
        assert run not in p.sent


async def test_a_new_process_that_dies_before_its_prepared_run_is_sent_is_charged():
    async with pool("fickle") as p:
        run = p.prepare("never")
        outcome = await p.end(run)

    assert p.ready == [run]
    assert isinstance(outcome, Abandoned)
    assert outcome.how == "ended with code 7"
    assert not run.entered


# ── death ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("type", "arguments", "how"),
    [
        ("ends", {"code": 3}, "ended with code 3"),
        ("ends", {"code": 0}, "ended with code 0"),
        (
            "kills_itself",
            {"number": signal.SIGKILL},
            "killed by signal 9 (SIGKILL), perhaps for lack of memory",
        ),
        ("kills_itself", {"number": signal.SIGABRT}, "killed by signal 6 (SIGABRT)"),
        ("hangs_up", {}, "it closed its line to the worker and was killed"),
    ],
)
async def test_the_death_of_a_process_is_its_jobs_own(type: str, arguments: dict, how: str):
    async with pool() as p:
        other = p.start("add", a=1, b=1)
        outcome = await p.outcome(type, **arguments)
        assert await p.end(other) == Succeeded(b"2")

    assert isinstance(outcome, Abandoned)
    assert outcome.cause is AbandonCause.CRASHED_ALONE
    assert outcome.how == how


async def test_a_dying_interpreter_says_where_it_was():
    async with pool() as p:
        outcome = await p.outcome("segfaults")
        assert await p.outcome("add", a=1, b=1) == Succeeded(b"2")

    assert outcome.how == "killed by signal 11 (SIGSEGV)"
    assert "Segmentation fault" in outcome.last_words
    assert "in segfaults" in outcome.last_words
    assert len(outcome.last_words) <= 16 * 1024


async def test_an_outcome_that_was_said_before_the_death_counts(tmp_path: Path):
    async with pool(limit=1) as p:
        await p.outcome("pid")
        (pid,) = p.slots.pids
        run = p.start("ends_after_all", path=str(tmp_path / "die"))
        # The loop stands still, so that death and outcome are found together.
        line = p.slots._running[run.number]._link._sock
        assert select.select([line], [], [], 10)[0]
        (tmp_path / "die").touch()
        while is_alive(pid):
            os.sched_yield()
        assert await p.end(run) == Succeeded(b'"said"')
        await until(lambda: not p.slots.pids)
        assert await p.outcome("add", a=1, b=1) == Succeeded(b"2")


async def test_a_process_and_its_descendants_have_the_mark_of_their_child(tmp_path: Path):
    path = tmp_path / "pids"
    async with pool() as p:
        run = p.start("stubborn", path=str(path))
        await until(lambda: said(path), 10)
        assert descendants.kill_marked(f"{descendants.CHILD}={p.worker}") == 4
        assert isinstance(await p.end(run), Abandoned)


async def test_a_process_leaves_the_signals_for_a_whole_service_to_its_worker():
    async with pool(limit=1) as p:
        pid = await p.result("pid")
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        assert await p.result("pid") == pid


async def test_what_a_handler_leaves_behind_is_killed_when_it_ends(tmp_path: Path):
    path = tmp_path / "pids"
    async with pool(limit=1) as p:
        first = await p.result("pid")
        assert await p.outcome("leaves_processes", path=str(path)) == Succeeded()
        pids = [int(pid) for pid in said(path).split()]
        assert len(pids) == 2
        await gone(pids)
        assert await p.result("pid") == first


async def test_a_handler_that_forks_comes_back_once():
    async with pool(limit=1) as p:
        assert await p.outcome("forks") == Succeeded(b'"parent"')
        assert await p.outcome("add", a=1, b=1) == Succeeded(b"2")


async def test_a_process_that_died_without_a_job_is_not_the_next_jobs_fault():
    async with pool(limit=1) as p:
        await p.outcome("pid")
        (pid,) = p.slots.pids
        # The loop stands still, so that the death is not known when the job is sent.
        os.kill(pid, signal.SIGKILL)
        while is_alive(pid):
            os.sched_yield()
        run = p.start("add", a=1, b=1)
        assert await p.end(run) == Released()
        assert not run.entered


def test_processes_die_with_their_child():
    program = (
        "import asyncio, signal, sys\n"
        "from tests.unit.worker.slot_pool import pool\n"
        "async def main():\n"
        "    async with pool() as p:\n"
        "        p.start('burns', seconds=100.0)\n"
        "        print(await p.result('pid'), flush=True)\n"
        "        print(*p.slots.pids, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    path = os.pathsep.join(sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    with child:
        child.stdout.readline()
        pids = [int(pid) for pid in child.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        child.kill()
    asyncio.run(until(lambda: not any(map(is_alive, pids))))


# ── processes ────────────────────────────────────────────────────────────────────────────────


async def test_a_process_is_used_again():
    async with pool(limit=2) as p:
        assert len({await p.result("pid") for _ in range(20)}) == 1


async def test_runs_at_once_have_processes_of_their_own():
    async with pool(limit=3) as p:
        runs = [p.start("talks", pause=0.3) for _ in range(3)]
        assert p.slots.room == 0
        await asyncio.gather(*map(p.end, runs))
        assert p.slots.room == 3
        assert len(set(p.slots.pids)) == 3


async def test_types_have_variables_of_their_own_and_take_each_others_place():
    async with pool(limit=1) as p:
        assert await p.result("red") == "red"
        assert await p.result("blue") == "blue"
        assert await p.result("red") == "red"
        await until(lambda: len(p.slots.pids) == 1)
    assert "COLOUR" not in os.environ


async def test_a_type_has_a_folder_of_its_own():
    async with pool() as p:
        assert await p.result("where") == "/usr"


async def test_a_process_is_replaced_after_so_many_jobs():
    async with pool(limit=1, recycle_jobs=3) as p:
        pids = [await p.result("pid") for _ in range(7)]

    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]


async def test_a_process_is_replaced_when_it_has_grown():
    async with pool(limit=1, recycle_mb=200) as p:
        first = await p.result("grows", megabytes=1)
        assert await p.result("grows", megabytes=250) == first
        assert await p.result("pid") != first


async def test_an_idle_process_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slots_module, "IDLE", 0.0)
    async with pool() as p:
        await p.outcome("pid")
        await until(lambda: not p.slots.pids)


async def test_a_running_handler_is_given_back_when_the_pool_closes(tmp_path: Path):
    path = tmp_path / "pids"
    async with pool() as p:
        run = p.start("stubborn", path=str(path))
        starting = p.start("add", a=1, b=1)
        await until(lambda: said(path), 10)
        if starting.number not in p.ended:
            await p.end(starting)
        await p.slots.close()
        assert p.ended[run.number] == [Released(started=True)]
        await gone(map(int, said(path).split()))


async def test_a_program_that_cannot_be_opened_fails_its_jobs_and_says_why():
    async with pool("broken") as p:
        run = p.start("never")
        outcome = await p.end(run)
        assert not run.entered

    assert isinstance(outcome, Failed)
    assert not outcome.began
    assert outcome.error.type == "ProcessNotStarted"
    assert "no process could be started for `never`" in outcome.error.message
    assert "the clerk is ill" in outcome.error.traceback


async def test_a_folder_that_is_not_there_fails_the_job_and_says_so():
    async with pool() as p:
        outcome = await p.outcome("nowhere")

    assert isinstance(outcome, Failed)
    told = outcome.error.message.replace("`", "'")
    assert "the folder '/no/such/folder' cannot be entered" in told
    assert "create it there, or correct 'cwd' of the job type" in told


def without_room(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    async def refuse(*_args, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("asyncio.create_subprocess_exec", refuse)


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE])
async def test_a_process_for_which_the_machine_has_no_room_costs_its_job_nothing(
    monkeypatch: pytest.MonkeyPatch, number: int
):
    without_room(monkeypatch, number)
    async with pool() as p:
        assert await p.outcome("add", a=1, b=1) == Released()

    assert os.strerror(number) in p.told[0]


@pytest.mark.parametrize(
    ("type", "outcome"), [("hoards_at_start", Released), ("limited_at_start", Failed)]
)
async def test_memory_that_is_missing_at_the_start_is_the_fault_of_a_limit_or_of_nobody(
    type: str, outcome: type
):
    async with pool("hungry") as p:
        assert isinstance(await p.outcome(type), outcome)


async def test_a_process_that_dies_before_it_is_ready_is_charged_like_any_death():
    async with pool("deadly") as p:
        outcome = await p.outcome("never")

    assert isinstance(outcome, Abandoned)
    assert outcome.cause is AbandonCause.CRASHED_ALONE
    assert outcome.how == "ended with code 7"


async def test_a_run_whose_process_cannot_start_is_stopped_at_once(
    monkeypatch: pytest.MonkeyPatch,
):
    without_room(monkeypatch, errno.EAGAIN)
    async with pool() as p:
        run = p.start("add", a=1, b=1)
        await until(lambda: p.told, 10)
        assert p.slots.room == 1
        p.slots.stop(run, Stop.CANCEL)
        assert p.ended == {run.number: [Cancelled()]}


async def test_a_process_that_cannot_even_be_started_fails_its_job(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.executable", "/no/such/python")
    async with pool() as p:
        outcome = await p.outcome("add", a=1, b=1)

    assert isinstance(outcome, Failed)
    assert "No such file or directory: '/no/such/python'" in outcome.error.message
    assert "Python" in outcome.error.message.partition("/no/such/python")[2]


async def test_a_process_that_never_becomes_ready_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slots_module, "START", 0.0)
    async with pool() as p:
        outcome = await p.outcome("add", a=1, b=1)

    assert isinstance(outcome, Failed)
    assert "did not become ready" in outcome.error.message


# ── the line ─────────────────────────────────────────────────────────────────────────────────


def test_every_field_of_a_claim_arrives():
    claim = Claim(
        job=Job(
            id="0" * 26,
            type="add",
            args=b'{"a":1}',
            queue="mail",
            level=Level.LOW,
            tenant="acme",
            due_at_ms=1,
            created_at_ms=2,
            delivery=Delivery.AT_MOST_ONCE,
            extras=Extras(
                retry=Retry(delays=[1, 2], no_retry_on=[ValueError]),
                timeout=3.5,
                tags=("a", "b"),
                metadata={"source": {"deep": [1, None]}},
                secrets=("a",),
            ),
            attempt=4,
            crashes=5,
            losses=6,
            suspect=True,
            generation=7,
            cost=8,
            schedule="nightly",
        ),
        fence=Fence(9, "f" * 16),
        worker="w",
        handout=10,
    )
    unlike = Job(
        id="",
        type="",
        args=b"",
        queue="",
        level=Level.HIGH,
        tenant="",
        due_at_ms=0,
        created_at_ms=0,
    )
    for field in dataclasses.fields(Job):
        assert getattr(claim.job, field.name) != getattr(unlike, field.name), field.name
    run = Run(3, claim, slot_program.app.registry.get("add"), 60.0, 0.0)

    arrived = slot_line.msgspec.msgpack.Decoder(slot_line.Do).decode(
        slot_line.msgspec.msgpack.encode(do(run))
    )

    assert arrived.number == 3
    assert arrived.timeout == 60.0
    assert claim_of(arrived) == claim


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        Succeeded(b"1", None),
        Succeeded(None, "why"),
        Failed(ErrorInfo(type="E", message="m", traceback="t", fingerprint="f", kinds=("E",))),
        TimedOut(ErrorInfo(type="E", message="m")),
        Rejected("never"),
        Rejected("never", ErrorInfo(type="E", message="m")),
        Snoozed(1.5),
        Cancelled(),
        Released(started=True),
        model.Held(),
        Abandoned(AbandonCause.CHILD_DIED, "how", "words"),
    ],
    ids=repr,
)
def test_every_outcome_arrives(outcome):
    written = slot_line.msgspec.msgpack.encode(done(1, outcome, None, 5))

    arrived = slot_line.msgspec.msgpack.Decoder(slot_line.Done).decode(written)

    assert outcome_of(arrived) == outcome


def test_the_line_knows_every_kind_of_outcome():
    assert set(slot_line._KINDS.values()) == set(model.Outcome.__args__)
