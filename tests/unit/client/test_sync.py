"""The same from plain code: a private event loop in a thread."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from lamplighter import App, ResultTimeout, Status, StoreError
from lamplighter.model.errors import InvalidArguments, SyncInsideLoop
from lamplighter.port.values import ChangeAnswer


def greet(name: str) -> str:
    return f"hello {name}"


@pytest.fixture
def plain(url):
    app = App(url)
    yield app, app.job(greet)
    app.close_sync()


def test_plain_code_changes_many_at_once(plain):
    app, job = plain
    handle = job.submit_sync("ann")

    assert app.jobs.change_sync("hold", type="greet", dry_run=True) == {"done": 1}
    assert app.jobs.change_sync("hold", type="greet", reason="test") == {"done": 1}
    assert handle.status_sync() is Status.PAUSED


def test_everything_works_from_plain_code(plain):
    app, job = plain

    handle = job.submit_sync("ann")
    later = job.options(delay=60).submit_sync("bob")
    (many,) = app.submit_many_sync([job.call("eve")])
    by_name = app.submit_sync("greet", {"name": "joe"})

    assert handle.status_sync() is Status.READY
    assert later.status_sync() is Status.SCHEDULED
    assert later.retry_sync() is ChangeAnswer.DONE
    assert many.hold_sync() is ChangeAnswer.DONE
    assert many.explain_sync().record.status is Status.PAUSED
    assert many.unhold_sync() is ChangeAnswer.DONE
    assert by_name.record_sync().job.args == b'{"name":"joe"}'
    assert by_name.cancel_sync() is ChangeAnswer.DONE
    assert by_name.replay_sync() is ChangeAnswer.DONE
    with pytest.raises(ResultTimeout):
        handle.result_sync(timeout=0)


def test_wrong_arguments_are_refused_before_a_thread_starts(plain):
    _, job = plain
    before = threading.active_count()

    with pytest.raises(InvalidArguments):
        job.submit_sync(5)

    assert threading.active_count() == before


def test_closing_ends_the_threads_and_the_next_call_starts_anew(plain):
    app, job = plain
    before = threading.active_count()
    app.open_sync()
    job.submit_sync("ann")
    assert threading.active_count() > before

    app.close_sync()
    app.close_sync()

    names = {thread.name for thread in threading.enumerate()}
    assert "lamplighter-portal" not in names
    assert job.submit_sync("bob").status_sync() is Status.READY


def test_threads_share_the_portal(plain):
    _, job = plain
    ids = []

    def submit() -> None:
        ids.extend(job.submit_sync(f"n{n}").id for n in range(10))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ids)) == 80


def test_a_call_that_waits_while_the_app_is_closed_ends_with_an_error(plain):
    app, job = plain
    handle = job.submit_sync("ann")
    errors = []

    def wait() -> None:
        try:
            handle.result_sync()
        except StoreError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not app._client.waiters:
        thread.join(0.001)
    app.close_sync()
    thread.join(10)

    assert len(errors) == 1


async def test_inside_a_running_loop_it_is_refused_with_the_remedy(app, charge):
    handle = await charge.submit("o-1")

    for call, remedy in (
        (lambda: charge.submit_sync("o-1"), "await charge.submit"),
        (handle.result_sync, "await handle.result"),
        (handle.status_sync, "await handle.status"),
        (handle.cancel_sync, "await handle.cancel"),
        (lambda: app.submit_many_sync([charge.call("o")]), "await app.submit_many"),
        (lambda: app.submit_sync("charge", {"order_id": "o"}), "await app.submit"),
        (app.close_sync, "await app.close"),
    ):
        with pytest.raises(SyncInsideLoop) as caught:
            call()
        assert remedy in caught.value.hint


async def test_a_thread_beside_a_loop_may_wait(app, charge, stored):
    handle = await asyncio.to_thread(charge.submit_sync, "o-1")

    assert await handle.status() is Status.READY
    assert await stored() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_own_way_to_the_store(plain):
    _, job = plain
    job.submit_sync("parent")
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        try:
            os.write(writing, job.submit_sync("child").id.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        child_id = pipe.read()
    os.waitpid(child, 0)

    assert len(child_id) == 26
    assert job.submit_sync("parent again").status_sync() is Status.READY


LATE_CHILD = """
import os, sys
from lamplighter import App

app = App(sys.argv[1])

@app.job
def work(n: int) -> None: ...

work.submit_sync(0)
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    work.submit_sync(1)
    os.write(ready[1], b".")
    os.read(go[0], 1)
    for n in range(10):
        print(work.submit_sync(n).id, flush=True)
    os._exit(0)
os.read(ready[0], 1)
app.close_sync()
os.write(go[1], b".")
os.waitpid(child, 0)
"""


def test_what_a_forked_child_submits_outlives_its_parents_store(url):
    # Locks that SQLite only believes to have let the parent's close delete the child's log.
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LATE_CHILD, url],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    ids = run.stdout.split()
    check = sqlite3.connect(url.removeprefix("sqlite:///"))
    stored = {row[0] for row in check.execute("SELECT id FROM job")}
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()

    assert len(ids) == 10
    assert set(ids) <= stored
    assert len(stored) == 12


def test_a_program_that_forgets_to_close_ends_by_itself(url):
    program = f"""
        from lamplighter import App
        app = App({url!r})

        @app.job
        def greet(name: str) -> None: ...

        print(greet.submit_sync("ann").id)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert len(done.stdout.strip()) == 26
    assert done.stderr == ""
