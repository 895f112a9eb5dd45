"""Tables in a terminal: ids, statuses, counts and times are whole, however narrow it is."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime
from fcntl import ioctl
from pathlib import Path

import pytest

from examples.shop import TENANTS
from examples.shop import app as shop_app
from lamplighter import runtime
from lamplighter.cli import columns, output
from lamplighter.port.values import NewWorker
from lamplighter.testing.clock import installed

GOLDEN = Path(__file__).with_name("golden")
ROOT = Path(__file__).parents[3]
ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
SECRET = re.compile(r"\b(?=[a-z]*[0-9])[a-z0-9]{12}\b")
HASH = re.compile(r"\b[0-9a-f]{16}\b")

COMMANDS = {
    "jobs": ["jobs"],
    "jobs-dead": ["jobs", "--status", "dead"],
    "dlq": ["dlq"],
    "queues": ["queues"],
    "schedules": ["schedules"],
    "runs": ["schedules", "runs", "count_the_till"],
    "tenants": ["tenants"],
    "types": ["types"],
    "workers": ["workers"],
    "token": ["token"],
    "audit": ["audit"],
    "audit-token": ["audit", "--limit", "1"],
}


@pytest.fixture
def shop(lamplighter, store, monkeypatch):
    """The example shop in the middle of a day."""
    monkeypatch.setattr("socket.gethostname", lambda: "kiosk")
    with installed(datetime(2030, 6, 1, 12, tzinfo=UTC)) as clock:
        infos = shop_app.registry.infos()
        queue = {info.name: info.queue for info in infos}
        store.dead("sync_old_warehouse", queue="warehouse", fingerprint="9f3b21aa0c1d0a2e")
        store.dead("charge", queue="payments", fingerprint="5d41402abc4b2a76", tenant="grand-hotel")
        clock.advance(seconds=75)
        worker = NewWorker(
            id="01JZZZ7Q0Y8M4T2K6R9V3X5W1C",
            host="kiosk-at-the-harbour",
            pid=4711,
            queues=("billing", "mail", "payments", "warehouse"),
            slots=50,
            types=infos,
        )
        store.run(lambda engine: engine.membership.join(worker))
        store.succeeded("send_confirmation", queue=queue["send_confirmation"])
        store.running("close_the_books", queue="billing", tenant="harbour-tours")
        store.submit("remind_of_cart", queue="mail", delay_ms=86_400_000, tags=["cart"])
        for tenant, weight in TENANTS.items():
            store.submit("write_invoice", queue="billing", tenant=tenant)
            lamplighter("tenants", "set", tenant, "--weight", str(weight), "--reason", "its plan")
        held = store.submit("charge", queue="payments", tenant="city-library")
        lamplighter("jobs", "hold", held, "--reason", "the card network is down until noon")
        lamplighter("queues", "set", "warehouse", "--hold", "--reason", "it was sold in 2009")
        every = ["--cron", "0 22 * * mon-sat", "--timezone", "Europe/Berlin"]
        put = lamplighter("schedules", "put", "count_the_till", "count_the_till", *every)
        assert put.exit_code == 0, put.stderr
        assert lamplighter("schedules", "trigger", "count_the_till").exit_code == 0
        scopes = ["--scope", "jobs:read", "--scope", "jobs:write"]
        made = lamplighter("token", "create", "--name", "the shop's own front door", *scopes)
        assert made.exit_code == 0, made.stderr
        clock.advance(seconds=4)

        def shown(width: int, *arguments: str) -> tuple[str, str]:
            monkeypatch.setattr(output, "width_of", lambda _: width)
            result = lamplighter(*arguments)
            assert result.exit_code == 0, result.stderr
            return result.stdout, result.stderr

        yield shown


def plain(text: str) -> str:
    """Put names of the same length in place of what is drawn by chance."""
    for pattern, letter in ((ID, "J"), (SECRET, "t"), (HASH, "h")):
        known: dict[str, str] = {}
        for found in pattern.findall(text):
            known.setdefault(found, f"{letter}{len(known) + 1:0{len(found) - 1}}")
        for found, name in known.items():
            text = text.replace(found, name)
    return text


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_looks_as_it_did(shop, name, width):
    shown, told = shop(width, *COMMANDS[name])
    told = plain(shown + told)
    file = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("LAMPLIGHTER_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_may_not_be_cut_is_whole(shop, name, width):
    whole, _ = shop(10_000, *COMMANDS[name])
    shown, told = shop(width, *COMMANDS[name])
    full, narrow = whole.splitlines(), shown.splitlines()
    assert len(narrow) == len(full)
    spans = [match.span() for match in re.finditer(r"\S+(?: \S+)*", full[0])]
    kept = {"id", "status", "state", "when", "failed", "count", "newest", "fingerprint", "due"}
    kept |= {"ready", "scheduled", "running", "oldest due", "next run", "fired", "failures"}
    kept |= {"weight", "waiting", "slots", "pid", "last beat", "worker", "prefix", "created", "did"}
    kept |= {"to"}
    kept |= {"queue", "tenant", "schedule", "type"} if name not in {"jobs", "jobs-dead"} else set()
    kept -= {"tenant"} if name in {"token", "audit", "audit-token", "schedules"} else set()
    kept -= {"when"} if name == "schedules" else set()
    kept -= {"queue", "type"} if name in {"types", "dlq", "schedules"} else set()
    for start, end in spans:
        heading = full[0][start:end]
        if heading not in kept:
            continue
        assert heading in narrow[0], (heading, told)
        for before, after in zip(full[1:], narrow[1:], strict=True):
            cell = re.split(r"  +", before[max(0, start - 1) :].strip())[0]
            assert cell in after, (heading, cell)
    if width >= 80:
        assert max(map(len, narrow)) <= width


@pytest.mark.parametrize("width", range(80, 150, 10))
def test_free_text_is_not_drawn_beside_a_name_that_is_cut(shop, width):
    shown, _ = shop(width, "jobs")
    head, *lines = shown.splitlines()
    if "about" in head:
        names = "\n".join(line[: head.index("about")] for line in lines)
        assert "…" not in names


def test_the_longest_name_of_something_is_whole_in_the_audit(lamplighter, store, monkeypatch):
    longest = "a-very-long-name-" + "x" * 47
    assert len(longest) == 64
    put = lamplighter("tenants", "set", longest, "--weight", "2", "--reason", "a trial " * 9)
    assert put.exit_code == 0, put.stderr
    for width in (60, 80, 120, 160):
        monkeypatch.setattr(output, "width_of", lambda _, width=width: width)
        assert longest in lamplighter("audit").stdout


@pytest.mark.parametrize("width", [80, 120])
def test_the_attempts_of_a_job_keep_their_error(lamplighter, store, monkeypatch, width):
    # How long an attempt took is a column too, and its width another one's loss.
    now = runtime.now_ms()
    monkeypatch.setattr(runtime, "now_ms", lambda: now)
    job_id = store.dead()
    monkeypatch.setattr(output, "width_of", lambda _: width)
    _, _, attempts = lamplighter("jobs", "show", job_id).stdout.partition("attempts\n")
    head, row, *_ = attempts.splitlines()
    assert head.split()[:3] == ["number", "outcome", "began"]
    assert row[head.index("error") :].startswith("CardDeclined")
    assert max(len(head), len(row)) <= width


def test_a_real_terminal_is_asked_for_its_width(shop, home):
    def at(width: int) -> str:
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        env = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES"}}
        env["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        command = [sys.executable, "-m", "lamplighter", "jobs", "list"]
        process = subprocess.Popen(command, cwd=home, env=env, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        while True:
            try:
                some = os.read(ours, 65_536)
            except OSError:  # its end, as Linux tells it
                break
            said += some
        os.close(ours)
        assert process.wait() == 0, said
        return re.sub(r"\x1b\[[0-9;]*m", "", said.decode())

    for width in (80, 120):
        lines = at(width).splitlines()
        assert len(ID.findall("\n".join(lines))) == 11
        assert max(map(len, lines)) <= width


HEAD = ("id", ">count", "~text", "?~spare", "?extra")


@pytest.mark.parametrize(
    ("room", "drawn"),
    [
        (200, [26, 5, 40, 20, 10]),
        (90, [26, 5, 21, 20, 10]),
        (60, [26, 5, 11, 12, None]),
        (46, [26, 5, 11, None, None]),
        (40, [26, 5, None, None, None]),
        (10, [26, 5, None, None, None]),
    ],
)
def test_text_gives_way_before_anything_else_does(room, drawn):
    assert columns.fitted(parts(), room) == drawn


def test_prose_gives_way_to_names():
    def drawn(room: int) -> list[int | None]:
        declared = zip(("id", "~name", "?~spare", "~~prose"), (26, 20, 12, 40), strict=True)
        given = [columns.Part(columns.column(one), n, 0, empty=False) for one, n in declared]
        return columns.fitted(given, room)

    assert drawn(104) == [26, 20, 12, 40]
    assert drawn(90) == [26, 20, 12, 26]
    assert drawn(72) == [26, 20, 12, 8]
    assert drawn(71) == [26, 20, 12, None]
    assert drawn(62) == [26, 20, 12, None]
    assert drawn(60) == [26, 18, 12, None]
    assert drawn(40) == [26, 12, None, None]


def parts(*, floor: int = 0, empty: bool = False) -> list[columns.Part]:
    widths = (26, 5, 40, 20, 10)
    return [
        columns.Part(
            columns.column(name),
            width=width,
            floor=floor if name == "~text" else 0,
            empty=empty and name == "~text",
        )
        for name, width in zip(HEAD, widths, strict=True)
    ]


def test_ids_in_a_text_are_whole_or_left_out():
    assert columns.fitted(parts(floor=26), 62) == [26, 5, 27, None, None]
    assert columns.fitted(parts(floor=26), 60) == [26, 5, None, 20, None]


def test_what_is_empty_goes_first():
    assert columns.fitted(parts(empty=True), 200) == [26, 5, 40, 20, 10]
    assert columns.fitted(parts(empty=True), 70) == [26, 5, None, 20, 10]


@pytest.mark.parametrize(
    "name", ["jobs", "dlq", "queues", "schedules", "tenants", "types", "workers", "token", "tokens"]
)
def test_the_bare_name_of_a_group_lists(shop, answer, name):
    assert answer(name) == answer(name, "list")


def test_jobs_that_have_ended_are_replayed(lamplighter, answer, store):
    ended, waiting = store.succeeded(), store.submit(delay_ms=60_000)
    (done,) = answer("jobs", "replay", ended)["jobs"]
    assert (done["answer"], done["state"]) == ("done", "waiting")
    assert store.job(ended).job.generation == 1
    refused = lamplighter("jobs", "replay", waiting)
    assert refused.exit_code == 1
    assert "it has not ended" in refused.stdout
    assert [entry["action"] for entry in answer("audit")["entries"]] == ["job.replay"]
