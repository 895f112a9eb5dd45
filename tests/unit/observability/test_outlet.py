"""Streams that take everything and never wait."""

import contextlib
import fcntl
import io
import json
import os
import pty
import socket
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from lamplighter.observability import logs, outlet
from lamplighter.observability.outlet import Outlet

PAGE = 4096
PATIENCE = 10.0


class Pipe:
    def __init__(self) -> None:
        self.source, self.sink = os.pipe()
        fcntl.fcntl(self.sink, fcntl.F_SETPIPE_SZ, PAGE)
        os.set_blocking(self.source, False)

    def read(self) -> bytes:
        try:
            return os.read(self.source, 1 << 20)
        except BlockingIOError:
            return b""

    def read_until(self, words: bytes) -> bytes:
        seen, end = b"", time.monotonic() + PATIENCE
        while words not in seen:
            assert time.monotonic() < end, seen[-200:]
            seen += self.read()
            time.sleep(0.001)
        return seen

    def close(self) -> None:
        for descriptor in (self.source, self.sink):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def pipe():
    made = Pipe()
    yield made
    made.close()


@pytest.fixture(params=["directly", "in a thread"])
def stream(pipe, request, monkeypatch):
    """An outlet on a pipe; where nothing can be written without waiting, a thread writes."""
    if request.param == "in a thread":
        monkeypatch.setattr(outlet.sys, "platform", "elsewhere")
    return Outlet(pipe.sink, limit=3 * PAGE)


def test_what_is_read_comes_whole_and_in_order(pipe, stream):
    lines = [f"line {number}\n".encode() for number in range(200)]
    for line in lines:
        assert stream.write(line) == len(line)
    assert pipe.read_until(b"line 199\n") == b"".join(lines)
    assert stream.dropped == 0


def test_a_full_pipe_keeps_nobody_waiting_and_what_is_too_much_is_counted(pipe, stream):
    began = time.monotonic()
    for number in range(1000):
        stream.write(f"{number:>63}\n".encode())
    assert time.monotonic() - began < PATIENCE / 2

    seen = pipe.read_until(b"were dropped")
    stream.write(b"at last\n")
    seen += pipe.read_until(b"at last\n")
    kept, notice, last = seen.decode().partition("lamplighter: ")
    assert [int(line) for line in kept.split()] == list(range(len(kept) // 64))
    assert 3 * PAGE <= len(kept) <= 6 * PAGE
    dropped = 1000 - len(kept) // 64
    assert f"{dropped:,} lines ({dropped * 64:,} bytes)" in notice + last
    assert stream.dropped == dropped


def test_a_notice_begins_a_line_of_its_own(pipe, stream):
    stream.write(b"x" * 10 * PAGE)
    assert b"x\nlamplighter: 1 line (" in pipe.read_until(b"was dropped")


def test_a_reader_that_has_gone_is_told_to_whoever_writes(pipe, stream):
    stream.write(b"first\n")
    pipe.read_until(b"first\n")
    os.close(pipe.source)
    if stream._target.waits:
        # The thread is the first to meet it.
        stream.write(b"second\n")
        stream.settle(PATIENCE)
    with pytest.raises(BrokenPipeError):
        stream.write(b"third\n")


def test_a_reader_that_goes_while_much_waits_is_told_too(pipe, stream):
    stream.write(b"x" * 2 * PAGE)
    os.close(pipe.source)
    stream.settle(PATIENCE)
    with pytest.raises(BrokenPipeError):
        stream.write(b"more\n")


def test_a_descriptor_that_leads_elsewhere_is_followed(pipe, stream, tmp_path):
    stream.write(b"here\n")
    assert pipe.read_until(b"here\n") == b"here\n"
    with (tmp_path / "file").open("wb") as file:
        os.dup2(file.fileno(), pipe.sink)
    stream.write(b"there\n")
    stream.settle(PATIENCE)
    assert (tmp_path / "file").read_bytes() == b"there\n"


def test_a_descriptor_of_ours_that_was_closed_is_not_mistaken_for_its_successor(pipe, tmp_path):
    stream = Outlet(pipe.sink)
    stream.write(b"one\n")
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    own = next(
        number
        for number in range(3, highest + 1)
        if number not in (pipe.sink, pipe.source)
        and outlet._key_of(number) == outlet._key_of(pipe.sink)
    )
    successor = os.open(tmp_path / "ledger", os.O_CREAT | os.O_WRONLY)
    os.dup2(successor, own)
    stream.write(b"two\n")
    assert pipe.read_until(b"two\n") == b"one\ntwo\n"
    assert (tmp_path / "ledger").read_bytes() == b""
    os.close(own)
    os.close(successor)


def test_a_socket_that_nobody_reads_keeps_nobody_waiting():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = Outlet(ours.fileno(), limit=PAGE)
        for _ in range(1000):
            stream.write(b"x" * 1023 + b"\n")
        assert stream.dropped
        theirs.settimeout(PATIENCE)
        seen = b""
        while b"were dropped" not in seen:
            seen += theirs.recv(1 << 16)


def test_a_terminal_that_was_stopped_keeps_nobody_waiting():
    master, slave = pty.openpty()
    stream = Outlet(slave, limit=PAGE)
    termios.tcflow(slave, termios.TCOOFF)
    for _ in range(1000):
        stream.write(b"x" * 63 + b"\n")
    assert stream.dropped
    termios.tcflow(slave, termios.TCOON)
    seen = b""
    while b"were dropped" not in seen:
        seen += os.read(master, 1 << 16)
    os.close(master)
    os.close(slave)


def test_a_forked_process_does_not_write_again_what_waits_in_its_parent(pipe):
    stream = Outlet(pipe.sink)
    stream.write(b"p" * 4 * PAGE)
    pid = os.fork()
    if pid == 0:
        stream.after_fork()
        stream.write(b"child\n")
        os._exit(0 if stream._size == len(b"child\n") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stream.write(b"\nend\n")
    assert pipe.read_until(b"\nend\n").replace(b"child\n", b"").count(b"p") == 4 * PAGE


def test_threads_may_write_at_once(pipe, stream):
    def write(mark: bytes) -> None:
        for _ in range(50):
            stream.write(mark * 30 + b"\n")

    threads = [threading.Thread(target=write, args=(mark,)) for mark in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.write(b"end\n")
    lines = pipe.read_until(b"end\n").split(b"\n")[:-2]
    assert sorted(lines) == [mark * 30 for mark in (b"a", b"b", b"c") for _ in range(50)]


PROGRAM = """
import sys
from lamplighter.observability import outlet
outlet.install()
outlet.install()
print("printed")
print("ünïcode", file=sys.__stdout__)
sys.stdout.buffer.write(b"bytes")
sys.stderr.write("complained")
assert sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
assert sys.stdout.name == "<stdout>" and not sys.stdout.isatty()
"""


@pytest.mark.parametrize("unbuffered", [False, True])
def test_the_streams_of_a_process_are_as_they_were(unbuffered):
    flags = ["-u"] if unbuffered else []
    done = subprocess.run(
        [sys.executable, *flags, "-c", PROGRAM], capture_output=True, check=False, timeout=30
    )
    assert done.stderr == b"complained"
    assert done.stdout == "printed\nünïcode\nbytes".encode()
    assert done.returncode == 0


def test_a_process_ends_soon_though_nobody_reads():
    program = "from lamplighter.observability import outlet; outlet.install(); print('x' * 300_000)"
    source, sink = os.pipe()
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], stdout=sink, check=False, timeout=30)
    assert done.returncode == 0
    assert time.monotonic() - began < PATIENCE
    assert os.read(source, 1 << 20).startswith(b"xxx")
    os.close(source)
    os.close(sink)


def test_streams_of_somebody_else_are_left_alone(monkeypatch):
    mine = io.StringIO()
    monkeypatch.setattr(sys, "stdout", mine)
    monkeypatch.setattr(sys, "stderr", None)
    outlet.install()
    assert sys.stdout is mine
    assert sys.stderr is None


def test_a_notice_for_programs_is_json():
    line = json.loads(logs.dropped_line(1200, 5000))
    assert line["event"] == "output.dropped"
    assert (line["lines"], line["bytes"], line["level"]) == (1200, 5000, "warning")
