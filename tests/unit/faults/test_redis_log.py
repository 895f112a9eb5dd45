"""The audit of Redis takes whole transactions only, and overlooks nothing."""

from pathlib import Path

import pytest

from tests.faults.audit.aof import LogTail, whole
from tests.faults.audit.replay import Replay, tenant_and_key

MANIFEST = "file base seq 1 type b\nfile one seq 1 type i\n"


def command(*words: str) -> bytes:
    texts = b"".join(b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words)
    return b"*%d\r\n" % len(words) + texts


SET = command("SET", "a", "line\r\nline")
TWO = command("MULTI") + command("SET", "b", "") + command("DEL", "a") + command("EXEC")


def test_a_transaction_is_taken_as_one_and_a_single_command_is_one_too():
    data = command("SELECT", "0") + b"#TS:123\r\n" + SET + TWO

    assert whole(data) == (
        [[[b"SET", b"a", b"line\r\nline"]], [[b"SET", b"b", b""], [b"DEL", b"a"]]],
        len(data),
    )


@pytest.mark.parametrize("cut", range(1, len(TWO)))
def test_what_was_written_half_way_is_left_for_later(cut: int):
    found, size = whole(SET + TWO[:-cut])

    assert len(found) == 1
    assert size == len(SET)


def log(folder: Path, base: int = 90) -> Path:
    place = folder / "appendonlydir"
    place.mkdir()
    (place / "appendonly.aof.manifest").write_text(MANIFEST)
    (place / "base").write_bytes(bytes(base))
    (place / "one").write_bytes(b"")
    return place


def test_a_log_is_followed_over_a_restart_that_threw_half_a_transaction_away(tmp_path: Path):
    place, tail = log(tmp_path), LogTail(tmp_path)
    (place / "one").write_bytes(SET + TWO[:30])
    before = tail.news()
    (place / "one").write_bytes(SET + SET)

    assert [len(before), len(tail.news()), len(tail.news())] == [1, 1, 0]


def test_a_log_goes_on_in_the_next_file(tmp_path: Path):
    place, tail = log(tmp_path), LogTail(tmp_path)
    (place / "one").write_bytes(SET)
    before = tail.news()
    (place / "one").write_bytes(SET + TWO)
    (place / "two").write_bytes(SET)
    (place / "appendonly.aof.manifest").write_text(MANIFEST + "file two seq 2 type i\n")

    assert [len(before), len(tail.news()), len(tail.news())] == [1, 2, 0]


def test_a_log_that_does_not_tell_all_is_refused(tmp_path: Path):
    log(tmp_path, base=1000)

    with pytest.raises(RuntimeError, match="does not tell all"):
        LogTail(tmp_path).news()


@pytest.mark.parametrize(
    "words",
    [("APPEND", "{lamp:0}:job:X", "a"), ("ZPOPMIN", "{lamp:0}:lease:30000"), ("FLUSHALL",)],
)
def test_a_command_that_the_audit_does_not_know_is_an_error(words: tuple[str, ...]):
    with pytest.raises(ValueError, match=words[0]):
        Replay().take([[word.encode() for word in words]])


def test_what_is_not_about_jobs_is_passed_over():
    assert Replay().take([[b"SET", b"faults", b"1"], [b"INCRBY", b"{lamp:0}:seq", b"5"]]) == []


def test_the_name_of_a_key_is_read_as_it_was_given():
    assert tenant_and_key("a%3Ab::%7B%C3%A9") == ("a:b", "{é")
