"""Catching what handlers print and log."""

import asyncio
import contextvars
import copy
import io
import logging
import logging.config
import subprocess
import sys
import threading

import pytest

from lamplighter.worker import capture
from lamplighter.worker.capture import speaking


class Sink:
    redact = None

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def write(self, level: str, text: str) -> None:
        self.said.append((level, text))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.said)


class Streams:
    """The streams of a program that has configured nothing."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self._level = logging.getLogger().level
        self._before = sys.stdout, sys.stderr

    def begin(self) -> None:
        # Not when the fixture is made: pytest puts its own in their place afterwards.
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.out, self.err
        root = logging.getLogger()
        root.handlers[:] = []
        root.setLevel(logging.WARNING)

    def end(self) -> None:
        capture.uninstall()
        sys.stdout, sys.stderr = self._before
        root = logging.getLogger()
        root.handlers[:] = [h for h in root.handlers if type(h) is not logging.StreamHandler]
        root.setLevel(self._level)


@pytest.fixture
def streams():
    streams = Streams()
    yield streams
    streams.end()


@pytest.fixture
def sink():
    return Sink()


log = logging.getLogger("tests.capture")


# ── prints ───────────────────────────────────────────────────────────────────────────────────


def test_prints_go_where_they_went_and_to_the_sink(streams, sink):
    streams.begin()
    capture.install()
    print("before")
    with speaking(sink):
        print("out")
        print("err", file=sys.stderr)
        sys.stdout.writelines(["a\n", "b\n"])
    print("after")

    out, err = streams.out, streams.err
    assert out.getvalue() == "before\nout\na\nb\nafter\n"
    assert err.getvalue() == "err\n"
    assert sink.text == "out\nerr\na\nb\n"
    assert {level for level, _ in sink.said} == {"out", "err"}


def test_twice_is_once_and_uninstall_puts_everything_back(streams, sink):
    streams.begin()
    inner = logging.Logger.callHandlers
    capture.install()
    capture.install()
    with speaking(sink):
        print("x")
        log.warning("y")
    assert sink.said == [("out", "x"), ("out", "\n"), ("warning", "y\n")]

    capture.uninstall()
    capture.uninstall()
    assert (sys.stdout, sys.stderr) == (streams.out, streams.err)
    assert logging.Logger.callHandlers is inner
    assert logging.getLogger().level == logging.WARNING


def test_a_stream_that_a_library_remembers_is_caught_if_the_tees_came_first(streams, sink):
    streams.begin()
    capture.install_streams()
    remembered = sys.stderr.write
    capture.install()
    with speaking(sink):
        remembered("x\n")
    assert sink.said == [("err", "x\n")]
    assert streams.err.getvalue() == "x\n"


def test_a_stream_that_is_missing_is_left_alone(streams, monkeypatch, sink):
    streams.begin()
    monkeypatch.setattr(sys, "stdout", None)
    capture.install()
    with speaking(sink):
        print("nowhere")
    assert sys.stdout is None
    assert sink.said == []


class Broken:
    redact = None

    def write(self, level: str, text: str) -> None:
        raise RuntimeError


class Reserved(Sink):
    def redact(self, text: str) -> str:
        return text.replace("4111", "•••")


def test_what_must_be_hidden_is_hidden_where_it_went_before_too(streams):
    streams.begin()
    capture.install()
    with speaking(Reserved()):
        print("card", 4111)
        log.warning("card %s", 4111)
    print("then 4111")

    assert "4111" not in streams.out.getvalue().replace("then 4111", "") + streams.err.getvalue()
    assert "card •••" in streams.out.getvalue()
    assert "card •••" in streams.err.getvalue()


def test_a_sink_that_raises_does_not_break_print(streams):
    streams.begin()
    capture.install()
    with speaking(Broken()):
        print("x", flush=True)
        log.error("y")
    assert streams.out.getvalue() == "x\n"
    assert streams.err.getvalue() == "y\n"


def test_a_closed_stream_does_not_break_print_inside_of_a_run(streams, sink):
    streams.begin()
    capture.install()
    sys.stdout.close()
    with speaking(sink):
        print("x", flush=True)
        sys.stdout.writelines(["y\n"])
    assert sink.text == "x\ny\n"
    assert streams.out.closed
    with pytest.raises(ValueError, match="closed"):
        print("x")


def test_what_is_no_text_is_refused_as_ever(streams, sink):
    streams.begin()
    capture.install()
    with speaking(sink), pytest.raises(TypeError):
        sys.stdout.write(b"bytes")
    assert sink.said == []


def test_a_tee_is_like_the_stream_it_wraps(streams, tmp_path, sink):
    streams.begin()
    with (tmp_path / "out").open("w+", encoding="latin-1", errors="replace") as file:
        tee = capture.Tee(file, "out")
        assert isinstance(tee, io.TextIOBase)
        assert (tee.encoding, tee.errors, tee.name) == ("latin-1", "replace", file.name)
        assert tee.fileno() == file.fileno()
        assert tee.buffer is file.buffer
        assert tee.mode == "w+"
        assert not tee.isatty()
        assert tee.readable() == tee.writable() == tee.seekable() is True
        assert tee.newlines is None
        tee.reconfigure(line_buffering=True)
        assert file.line_buffering
        with speaking(sink):
            assert tee.write("é\n") == 2
            assert tee.write("") == 0
            tee.buffer.write(b"bytes\n")
        tee.flush()
        assert tee.tell() == file.tell() == 8
        tee.seek(0)
        assert file.read() == "é\nbytes\n"
        assert tee.truncate(0) == 0
        del tee
        assert not file.closed
    assert sink.said == [("out", "é\n")]


def test_the_copy_of_a_tee_writes_to_the_same_stream(streams):
    streams.begin()
    tee = capture.Tee(sys.stdout, "out")
    copy.copy(tee).write("x")
    assert streams.out.getvalue() == "x"


# ── whose text it is ─────────────────────────────────────────────────────────────────────────


async def test_two_runs_on_one_loop_are_told_apart(streams):
    streams.begin()
    capture.install()
    one, two = Sink(), Sink()
    turn = asyncio.Barrier(2)

    async def helper(name: str) -> None:
        print(f"{name} in a task of its own")

    async def handler(name: str, sink: Sink) -> None:
        with speaking(sink):
            print(f"{name} begins")
            await turn.wait()
            await asyncio.create_task(helper(name))
            await asyncio.to_thread(print, f"{name} in a thread")
            await turn.wait()
            log.info("%s ends", name)

    await asyncio.gather(handler("one", one), handler("two", two))

    for name, sink in (("one", one), ("two", two)):
        lines = sink.text.splitlines()
        assert lines == [
            f"{name} begins",
            f"{name} in a task of its own",
            f"{name} in a thread",
            f"{name} ends",
        ]
    assert capture.current.get() is None


def test_a_thread_of_ones_own_speaks_only_in_a_copied_context(streams, sink):
    streams.begin()
    capture.install()
    with speaking(sink):
        for target, args in (
            (print, ("unheard",)),
            (contextvars.copy_context().run, (print, "heard")),
        ):
            thread = threading.Thread(
                target=contextvars.Context().run if target is print else target,
                args=(print, *args) if target is print else args,
            )
            thread.start()
            thread.join()
    assert streams.out.getvalue() == "unheard\nheard\n"
    assert sink.text == "heard\n"


# ── logging ──────────────────────────────────────────────────────────────────────────────────


def test_without_configuration_infos_are_caught_and_warnings_still_appear(streams, sink):
    streams.begin()
    capture.install()
    with speaking(sink):
        log.debug("too small")
        log.info("small")
        log.warning("big %s", "one")
    log.info("outside")
    log.warning("outside")

    assert sink.said == [("info", "small\n"), ("warning", "big one\n")]
    assert streams.err.getvalue() == "big one\noutside\n"


def test_the_programs_own_level_is_left_alone(streams, sink):
    streams.begin()
    logging.getLogger().setLevel(logging.ERROR)
    capture.install()
    with speaking(sink):
        log.warning("no")
        log.error("yes")
    assert sink.said == [("error", "yes\n")]


@pytest.mark.parametrize("late", [False, True])
def test_what_a_handler_writes_to_a_stream_is_not_caught_twice(streams, sink, late):
    streams.begin()

    def configure():
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s: %(message)s")

    if not late:
        configure()
    capture.install()
    if late:
        configure()
    with speaking(sink):
        log.debug("once")
    assert sink.said == [("debug", "once\n")]
    assert streams.err.getvalue() == "DEBUG: once\n"


def test_a_configuration_that_removes_all_handlers_does_not_remove_us(streams, sink):
    streams.begin()
    capture.install()
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"it": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["it"], "level": "INFO"},
        }
    )
    with speaking(sink):
        log.info("once")
    assert sink.said == [("info", "once\n")]
    assert streams.err.getvalue() == "once\n"


def test_a_logger_that_does_not_propagate_is_caught_too(streams, sink):
    streams.begin()
    own = logging.getLogger("tests.capture.own")
    capture.install()
    handler = logging.StreamHandler()
    own.addHandler(handler)
    own.propagate = False
    try:
        with speaking(sink):
            own.warning("once")
    finally:
        own.removeHandler(handler)
        own.propagate = True
    assert sink.said == [("warning", "once\n")]
    assert streams.err.getvalue() == "once\n"


def test_a_traceback_and_a_stack_are_caught_and_the_record_is_not_changed(streams, sink):
    streams.begin()

    class Short(logging.Formatter):
        def formatException(self, ei):  # noqa: N802 - logging's name
            return f"<{ei[0].__name__}>"

    handler = logging.StreamHandler()
    handler.setFormatter(Short("%(message)s"))
    logging.getLogger().addHandler(handler)
    capture.install()
    with speaking(sink):
        try:
            raise ValueError("oh")
        except ValueError:
            log.exception("failed")
        log.error("here", stack_info=True)
        log.error("nothing", exc_info=True)  # noqa: LOG014 - it happens

    assert streams.err.getvalue().startswith("failed\n<ValueError>\n")
    first, second, third = (text for _, text in sink.said)
    assert first.startswith("failed\nTraceback (most recent call last):\n")
    assert first.endswith("ValueError: oh\n")
    assert second.startswith("here\nStack (most recent call last):\n")
    assert third == "nothing\n"


def test_a_record_that_cannot_be_written_is_caught_as_it_is(streams, sink, monkeypatch):
    streams.begin()
    monkeypatch.setattr(logging, "raiseExceptions", False)
    capture.install()
    with speaking(sink):
        log.error("%d apples", "no")
        logging.getLogger().log(17 + 20, "odd level")
    assert sink.said == [("error", "%d apples\n"), ("level 37", "odd level\n")]


# ── structlog ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def structlog():
    structlog = pytest.importorskip("structlog")
    yield structlog
    structlog.reset_defaults()


def test_structlog_as_it_comes_prints(streams, sink, structlog):
    streams.begin()
    capture.install()
    with speaking(sink):
        structlog.get_logger().info("hello", user=7)
    assert {level for level, _ in sink.said} == {"out"}
    assert sink.text.count("hello") == 1
    assert sink.text == streams.out.getvalue()


def test_structlog_over_logging_is_caught_once_with_its_level(streams, sink, structlog):
    streams.begin()
    shared = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso")]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ]
        )
    )
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    capture.install()
    log = structlog.get_logger("tests.capture")
    with speaking(sink):
        log.info("hello", user=7, name="Ada")
        try:
            raise ValueError("oh")
        except ValueError:
            log.exception("failed", order="o-1")

    assert sink.said[0] == ("info", "hello user=7 name='Ada'\n")
    level, text = sink.said[1]
    assert level == "error"
    assert text.startswith("failed order='o-1'\nTraceback (most recent call last):\n")
    assert len(sink.said) == 2
    assert streams.err.getvalue().count('"event": "hello"') == 1


# ── a real process ───────────────────────────────────────────────────────────────────────────

PROGRAM = """
import logging, os, sys
from lamplighter.worker import capture

class Sink:
    redact = None

    def write(self, level, text):
        os.write(3, f"{level}: {text!r}\\n".encode())

capture.install()
with capture.speaking(Sink()):
    print("print")
    logging.getLogger("x").info("quiet")
    logging.getLogger("x").warning("loud")
    os.close(1)
    print("closed", flush=True)
sys.stdout = sys.__stdout__ = None
"""


def test_a_real_process_goes_on_printing_where_it_did(tmp_path):
    heard = tmp_path / "heard"
    command = f'exec "{sys.executable}" -c "$PROGRAM" 3>"{heard}"'
    done = subprocess.run(
        ["sh", "-c", command],
        env={"PROGRAM": PROGRAM, "PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("print\n", "loud\n", 0)
    assert heard.read_text().splitlines() == [
        "out: 'print'",
        "out: '\\n'",
        "info: 'quiet\\n'",
        "warning: 'loud\\n'",
        "out: 'closed'",
        "out: '\\n'",
    ]
