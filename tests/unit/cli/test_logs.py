"""`lamplighter jobs logs`: what attempts said, as people and programs read it."""

import json
import threading
import time
from collections.abc import Callable

import pytest

from lamplighter.cli import logs as module
from lamplighter.cli.main import main
from lamplighter.model.job import ErrorInfo
from lamplighter.model.journal import Journal, Line, Piece, Progress, pack
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.store import Engine
from lamplighter.port.values import Recording

UNKNOWN = "01M7FGQ3150077Z61KMGXG8AQQ"
BROKEN = ErrorInfo(type="Broken", message="it broke", traceback="Traceback:\nBroken: it broke")


def piece(number: int, *texts: str, first: int = 0, level: str = "info") -> Piece:
    lines = [Line(first + place, 1500, level, text) for place, text in enumerate(texts)]
    return Piece(number, pack(lines))


class Scene:
    """A job whose attempts say what the test makes them say."""

    def __init__(self, store) -> None:
        self._store = store
        self.id = store.submit()
        self.claim = None

    @property
    def lease(self) -> int:
        return self.claim.fence.lease

    def begin(self) -> None:
        async def work(engine: Engine) -> None:
            (self.claim,) = (await self._store.claim(engine, "charge")).claims

        self._store.run(work)

    def say(self, *pieces: Piece, progress: Progress | None = None) -> None:
        journal = Journal(pieces=pieces, progress=progress)
        self._store.run(
            lambda engine: engine.jobs.record([Recording(self.id, self.claim.fence, journal)])
        )

    def fail(self) -> None:
        self._end(Failed(BROKEN), Retry(delays=[0, 0, 0]))

    def succeed(self) -> None:
        self._end(Succeeded(b'"paid"'), None)

    def _end(self, outcome, retry) -> None:
        self._store.run(
            lambda engine: engine.jobs.settle([settle(self.claim, outcome, retry=retry)])
        )


@pytest.fixture
def scene(store) -> Scene:
    return Scene(store)


def test_lines_have_time_attempt_level_and_text(lamplighter, scene):
    scene.begin()
    scene.say(piece(0, "began", "half way"), piece(1, "boom", first=2, level="error"))
    scene.fail()
    scene.begin()
    scene.say(piece(0, "again"))

    lines = lamplighter("jobs", "logs", scene.id).stdout.splitlines()

    parts = [line.split(maxsplit=3) for line in lines]
    assert [part[3] for part in parts] == ["began", "half way", "boom", "again"]
    assert [part[2] for part in parts] == ["info", "info", "error", "info"]
    assert parts[0][1] == parts[2][1] == f"#1/{scene.lease - 1}"
    assert parts[3][1] == f"#2/{scene.lease}"
    assert all(part[0].endswith("Z") for part in parts)


def test_programs_get_one_document_whose_keys_stay(answer, scene):
    scene.begin()
    scene.say(piece(0, "began"), piece(2, "the end", first=10))

    told = answer("jobs", "logs", scene.id)

    assert set(told) == {"id", "status", "lines", "cut"}
    assert (told["id"], told["status"], told["cut"]) == (scene.id, "running", 9)
    first, last = told["lines"]
    assert set(first) == {"lease", "attempt", "number", "at", "after_seconds", "level", "text"}
    assert (first["lease"], first["attempt"], first["number"]) == (scene.lease, 1, 0)
    assert (first["after_seconds"], first["level"], first["text"]) == (1.5, "info", "began")
    assert (last["number"], last["text"]) == (10, "the end")


def test_where_lines_were_cut_there_is_a_mark(lamplighter, scene):
    scene.begin()
    scene.say(piece(0, "first", "second"), piece(7, "last", first=12_347))
    scene.fail()
    scene.begin()
    scene.say(piece(3, "headless", first=1))

    lines = lamplighter("jobs", "logs", scene.id).stdout.splitlines()

    assert [line.split()[-1] for line in lines] == ["first", "second", "…", "last", "…", "headless"]
    assert lines[2] == "… 12,345 lines cut …"
    assert lines[4] == "… 1 line cut …"


def test_a_piece_that_cannot_be_read_says_so_and_hides_nothing_else(lamplighter, scene):
    scene.begin()
    scene.say(piece(0, "before"), Piece(1, b"\xff{"), piece(2, "after", first=2))

    told = lamplighter("jobs", "logs", scene.id).stdout

    assert "cannot be read" in told
    assert told.index("before") < told.index("cannot be read") < told.index("after")


HOSTILE = ["\x1b[2Jgone", "\r#1/1  info  forged", "a\nforged line", "\u202eright to left", "\x07"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_lines_stay_lines_and_give_no_orders(lamplighter, scene, text):
    scene.begin()
    scene.say(piece(0, text, "next"))
    scene.say(Piece(1, pack([Line(2, 0, text, "hostile level")])))

    told = lamplighter("jobs", "logs", scene.id).stdout

    assert len(told.splitlines()) == 3
    assert all(character.isprintable() or character == "\n" for character in told)


@pytest.mark.parametrize("at_ms", [-5, 10**18])
def test_a_line_from_an_impossible_time_is_shown_all_the_same(lamplighter, scene, at_ms):
    scene.begin()
    scene.say(Piece(0, pack([Line(0, at_ms, "info", "odd")])))

    result = lamplighter("jobs", "logs", scene.id)

    assert result.exit_code == 0
    assert result.stdout.startswith("+")
    assert "odd" in result.stdout


def test_tail_shows_the_last_lines(lamplighter, answer, scene):
    scene.begin()
    scene.say(*(piece(number, f"line {number}", first=number) for number in range(250)))

    lines = lamplighter("jobs", "logs", scene.id, "--tail", "2").stdout.splitlines()

    assert [line.split("  ")[-1] for line in lines] == ["line 248", "line 249"]
    assert len(answer("jobs", "logs", scene.id)["lines"]) == 250
    assert not lamplighter("jobs", "logs", scene.id, "--tail", "0").output


def test_attempt_shows_only_the_one_with_that_lease(lamplighter, answer, scene):
    scene.begin()
    scene.say(piece(0, "first"))
    first = scene.lease
    scene.fail()
    scene.begin()
    scene.say(piece(0, "second"))

    def texts(lease: int) -> list[str]:
        told = answer("jobs", "logs", scene.id, "--attempt", str(lease))
        return [line["text"] for line in told["lines"]]

    assert texts(first) == ["first"]
    assert texts(scene.lease) == ["second"]
    nobody = lamplighter("jobs", "logs", scene.id, "--attempt", "999")
    assert (nobody.exit_code, nobody.stdout) == (0, "")
    assert "with lease 999 has no log" in nobody.stderr


def test_a_job_without_a_log_says_so_beside_the_answer(lamplighter, answer, scene):
    result = lamplighter("jobs", "logs", scene.id)

    assert (result.exit_code, result.stdout) == (0, "")
    assert f"job {scene.id} has no log" in result.stderr
    assert answer("jobs", "logs", scene.id)["lines"] == []


def test_an_unknown_job_is_an_error(lamplighter, store):
    result = lamplighter("jobs", "logs", UNKNOWN)
    assert result.exit_code == 1
    assert f"no job `{UNKNOWN}`" in result.stderr
    assert lamplighter("jobs", "logs", "nonsense").exit_code == 1


# ── follow ───────────────────────────────────────────────────────────────────────────────────


class Following:
    """The command in a thread, and what it has printed so far."""

    def __init__(self, capsys, *arguments: str) -> None:
        self.code: object = None
        self._capsys = capsys
        self._told = ""
        self._thread = threading.Thread(target=self._run, args=(arguments,), daemon=True)
        self._thread.start()

    def _run(self, arguments: tuple[str, ...]) -> None:
        try:
            main(["jobs", "logs", *arguments])
        except SystemExit as end:
            self.code = end.code

    def told(self) -> str:
        self._told += self._capsys.readouterr().out
        return self._told

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.told())

    def wait_for_end(self) -> str:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.told()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def follow(capsys, home, monkeypatch):
    monkeypatch.setattr(module, "POLL", 0.02)
    return lambda *arguments: Following(capsys, *arguments)


def test_follow_prints_new_lines_and_attempts_until_the_job_has_ended(scene, follow):
    following = follow(scene.id, "--follow")
    scene.begin()
    scene.say(piece(0, "first try"))
    following.wait_for("first try")
    scene.say(piece(1, "more", first=1))
    following.wait_for("more")
    scene.fail()
    scene.begin()
    scene.say(piece(0, "second try"))
    following.wait_for("second try")
    scene.say(piece(1, "last words", first=1))
    scene.succeed()

    told = following.wait_for_end()

    assert following.code == 0
    assert [line.split("  ")[-1] for line in told.splitlines()] == [
        "first try",
        "more",
        "second try",
        "last words",
    ]


def test_follow_of_one_attempt_ends_with_it(scene, follow):
    scene.begin()
    scene.say(piece(0, "early", "later"))
    following = follow(scene.id, "-f", "--attempt", str(scene.lease), "--tail", "1", "--json")
    following.wait_for("later")
    scene.say(piece(1, "last", first=2))
    following.wait_for("last")
    scene.fail()

    told = following.wait_for_end()

    assert [json.loads(line)["text"] for line in told.splitlines()] == ["later", "last"]


def test_follow_of_a_job_that_has_ended_prints_its_log(scene, lamplighter):
    scene.begin()
    scene.say(piece(0, "all there is"))
    scene.succeed()

    result = lamplighter("jobs", "logs", scene.id, "--follow")

    assert result.exit_code == 0
    assert "all there is" in result.stdout


# ── show ─────────────────────────────────────────────────────────────────────────────────────


def test_show_tells_the_progress(lamplighter, answer, scene):
    scene.begin()
    assert answer("jobs", "show", scene.id)["progress"] is None
    scene.say(progress=Progress(done=30, total=200, note="invoices\x1b[2J"))

    assert "30 of 200 (15 %), invoices\\x1b[2J" in lamplighter("jobs", "show", scene.id).stdout
    assert answer("jobs", "show", scene.id)["progress"] == {
        "done": 30,
        "total": 200,
        "note": "invoices\x1b[2J",
    }


def test_show_tells_every_attempt_also_the_running_one(lamplighter, answer, scene):
    scene.begin()
    scene.fail()
    scene.begin()

    shown = lamplighter("jobs", "show", scene.id).stdout
    first, second = answer("jobs", "show", scene.id)["attempts"]

    assert set(first) == {
        *("generation", "number", "lease", "outcome", "worker", "host", "started_at"),
        *("finished_at", "seconds", "error"),
    }
    assert (first["outcome"], second["outcome"]) == ("failed", "running")
    assert first["seconds"] >= 0
    assert (second["finished_at"], second["seconds"]) == (None, None)
    assert second["lease"] == first["lease"] + 1
    table = shown[shown.index("\nattempts") :].splitlines()
    assert " ".join(table[2].split()) == "number outcome began ago took lease host worker error"
    assert ("failed" in table[3], "Broken: it broke" in table[3]) == (True, True)
    assert "running" in table[4]


def test_show_tells_the_tracebacks_of_all_attempts_when_asked(lamplighter, scene):
    for _ in range(2):
        scene.begin()
        scene.fail()

    assert lamplighter("jobs", "show", scene.id).stdout.count("Traceback:") == 1
    told = lamplighter("jobs", "show", scene.id, "--tracebacks").stdout
    assert told.count("Traceback:") == 2
    assert f"attempt 2, lease {scene.lease}" in told
