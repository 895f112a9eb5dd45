"""Programs as jobs: what they are given, what becomes of their end, and that nothing survives."""

import sys
import threading
import time
from pathlib import Path

import pytest

from lamplighter import App, CancelRequested, Context, Reject, command, testing
from lamplighter.command import CommandFailed
from lamplighter.model.errors import InvalidArguments, InvalidOption
from lamplighter.model.outcome import TimedOut


@pytest.fixture
def python(app):
    def make(script: str, *args: str, **options):
        return app.command("run", [sys.executable, "-c", script, *args], **options)

    return make


async def test_the_payload_is_json_on_stdin_and_the_output_is_the_result(python):
    job = python("import sys; print(sys.stdin.read().strip() + ' and ' + sys.argv[1])", "more")

    assert await testing.run(job, keep=[7], name="ü") == '{"keep":[7],"name":"ü"} and more\n'


async def test_it_knows_its_job_its_variables_and_its_folder(python, tmp_path, monkeypatch):
    monkeypatch.setenv("OUTER", "outer")
    names = ["OUTER", "INNER", "LAMPLIGHTER_ATTEMPT"]
    show = f"import os; print(*[os.environ[name] for name in {names}], os.getcwd())"
    job = python(show, env={"INNER": "inner"}, cwd=tmp_path)

    assert await testing.run(job) == f"outer inner 1 {tmp_path}\n"


async def test_it_is_not_told_where_the_store_is_nor_our_keys(python, monkeypatch):
    for name in ("URL", "HTTP_SECRET", "TOKEN"):
        monkeypatch.setenv(f"LAMPLIGHTER_{name}", "canary")
        monkeypatch.setenv(f"LAMPLIGHTER_{name}_FILE", "/run/canary")
    show = "import os; print('canary' in str(dict(os.environ)), os.environ.get('LAMPLIGHTER_URL'))"

    assert await testing.run(python(show)) == "False None\n"


async def test_a_password_of_postgresql_is_given_by_its_variables_alone(python, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "canary")
    given = python("import os; print(os.environ['PGPASSWORD'])", env={"PGPASSWORD": "its own"})

    assert await testing.run(given) == "its own\n"


async def test_it_does_not_inherit_the_password_of_postgresql(python, monkeypatch):
    for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("PGHOST", "db.example")
    show = "import os; print('canary' in str(dict(os.environ)), os.environ.get('PGHOST'))"

    assert await testing.run(python(show)) == "False db.example\n"


async def test_it_is_told_where_the_store_is_if_its_variables_say_so(python, monkeypatch):
    monkeypatch.setenv("LAMPLIGHTER_URL", "canary")
    show = "import os; print(os.environ.get('LAMPLIGHTER_URL'))"

    given = python(show, env={"LAMPLIGHTER_URL": "sqlite:///jobs.db"})
    assert await testing.run(given) == "sqlite:///jobs.db\n"


async def test_a_code_is_a_failure_with_the_last_lines_of_stderr(python):
    script = (
        r"import sys; sys.stderr.buffer.write(b'line\n' * 100 + b'bad \xff end\n'); sys.exit(3)"
    )

    with pytest.raises(CommandFailed) as raised:
        await testing.run(python(script))

    first, *lines = str(raised.value).splitlines()
    assert first.endswith("ended with code 3:")
    assert lines == ["line"] * 19 + ["bad \N{REPLACEMENT CHARACTER} end"]


async def test_a_signal_is_a_failure_with_its_name(python):
    with pytest.raises(CommandFailed, match=r"signal 9 \(SIGKILL\)"):
        await testing.run(python("import os; os.kill(os.getpid(), 9)"))


async def test_some_codes_are_never_tried_again(python):
    with pytest.raises(Reject, match=r"code 2"):
        await testing.run(python("import sys; sys.exit(2)", no_retry_codes=(2,)))


@pytest.mark.parametrize("thing", ["lamplighter-no-such-program", "/etc/passwd", "/etc/passwd/x"])
async def test_what_cannot_be_run_is_rejected_with_name_and_remedy(app, thing):
    job = app.command("run", [thing])
    with pytest.raises(Reject, match=f"`{thing}`.*install it there"):
        await testing.run(job)


async def test_a_missing_folder_is_named(app):
    job = app.command("run", ["true"], cwd="/no/such/folder")
    with pytest.raises(Reject, match="the folder `/no/such/folder` does not exist"):
        await testing.run(job)


async def test_of_a_long_output_the_ends_are_kept(python):
    script = "print('first'); print('x' * 5_000_000); print('a\\0b'); print('last')"

    text = await testing.run(python(script))

    assert len(text) < 10_000
    assert text.startswith("first\n")
    assert "bytes cut" in text
    assert text.endswith("a\N{REPLACEMENT CHARACTER}b\nlast\n")


async def test_a_command_that_does_not_read_is_no_problem(python):
    assert await testing.run(python("print('done')"), text="x" * 60_000) == "done\n"


async def test_a_command_that_closes_its_output_is_waited_for(python, tmp_path):
    script = (
        "import os, pathlib, time; os.close(1); os.close(2); time.sleep(0.3);"
        f"pathlib.Path({str(tmp_path / 'mark')!r}).touch()"
    )
    assert await testing.run(python(script)) == ""
    assert (tmp_path / "mark").exists()


FAMILY = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[2] + "import time; time.sleep(60)"])
pathlib.Path(sys.argv[1] + ".new").write_text(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
exec(sys.argv[3])
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int]) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.01)
    return False


def pids_in(path: Path) -> list[int]:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return [int(pid) for pid in path.read_text().split()]


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
@pytest.mark.parametrize("deaf", ["", DEAF])
async def test_at_its_timeout_it_is_killed_with_all_it_has_started(
    python, tmp_path, monkeypatch, deaf
):
    monkeypatch.setattr(command, "PATIENCE", 0.3)
    job = python(FAMILY, str(tmp_path / "pids"), deaf, deaf + "time.sleep(60)", timeout=1.5)

    outcome = await testing.attempt(job)

    assert isinstance(outcome, TimedOut)
    assert gone(pids_in(tmp_path / "pids"))


@linux
async def test_what_it_leaves_behind_is_killed_and_not_waited_for(python, tmp_path):
    job = python(FAMILY, str(tmp_path / "pids"), "", "print('mine')")

    assert await testing.run(job) == "mine\n"
    assert gone(pids_in(tmp_path / "pids"))


@linux
def test_one_that_ends_well_when_it_is_told_to_stop_was_stopped_all_the_same(python, tmp_path):
    exits = "import signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); time.sleep(60)"
    job = python(FAMILY, str(tmp_path / "pids"), "", exits)
    flag = threading.Event()
    raised = []

    def run() -> None:
        try:
            job(Context.sample(cancelled=flag), {})
        except CancelRequested as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    pids = pids_in(tmp_path / "pids")
    flag.set()
    thread.join(10)

    assert raised
    assert gone(pids)


@linux
def test_a_process_that_ends_kills_its_commands(python, tmp_path):
    job = python(FAMILY, str(tmp_path / "pids"), DEAF, DEAF + "time.sleep(60)")
    failed = []

    def run() -> None:
        try:
            job(Context.sample(), {})
        except CommandFailed as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    pids = pids_in(tmp_path / "pids")
    command.kill_all()
    thread.join(10)

    assert failed
    assert gone(pids)
    assert not command._alive


def test_no_pipe_stays_open(python):
    job = python("print(1)")
    job(Context.sample(), {})
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        job(Context.sample(), {})
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ("ls -l", {}),
        ([], {}),
        (["a", 1], {}),
        (["a\0b"], {}),
        (["a"], {"no_retry_codes": [0]}),
        (["a"], {"no_retry_codes": ["2"]}),
        (["a"], {"env": {"A": 1}}),
        (["a"], {"timeuot": 1}),
    ],
)
def test_what_is_no_command_is_refused(argv, options):
    with pytest.raises(InvalidOption):
        App().command("run", argv, **options)


def test_arguments_go_by_name(app):
    job = app.command("run", ["true"], queue="tools", priority="low")

    assert (job.name, job.type.queue) == ("run", "tools")
    assert job.call(a=1).new.args == b'{"a":1}'
    with pytest.raises(InvalidArguments, match="by position"):
        job.call(1)


async def test_a_test_sees_what_was_submitted_and_runs_it(app):
    job = app.command("echo", ["cat"])

    async with testing.store(app) as t:
        await job.submit(keep=7)
        t.assert_submitted(job, keep=7)
        t.assert_not_submitted(job, keep=8)
        await t.drain()

        assert [each.record.result for each in t.submitted(job)] == [b'"{\\"keep\\":7}\\n"']
