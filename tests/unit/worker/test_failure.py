"""What the store keeps of an exception."""

import pytest

from lamplighter.worker import failure
from lamplighter.worker.link import Broken


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def caught(function) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError


def deep():
    return {}["missing"]


def other():
    return {}["missing"]


def test_an_error_is_described_by_name_message_place_and_bases():
    info = failure.describe(caught(deep))

    assert info.type == "KeyError"
    assert info.message == "'missing'"
    assert "in deep" in info.traceback
    assert info.kinds == ("KeyError", "LookupError", "Exception", "BaseException")


def test_errors_of_one_place_share_a_fingerprint_and_others_do_not():
    first, second = failure.describe(caught(deep)), failure.describe(caught(deep))
    elsewhere = failure.describe(caught(other))

    assert first.fingerprint == second.fingerprint
    assert len(first.fingerprint) == 16
    assert elsewhere.fingerprint != first.fingerprint


def test_own_classes_are_named_with_their_module():
    info = failure.describe(Odd())

    assert info.type.endswith("test_failure.Odd")
    assert "cannot be shown" in info.message


@pytest.mark.parametrize("text", ["a\0b", "half \ud800 pair", "x" * 100_000, "ü" * 50_000])
def test_any_text_becomes_storable(text):
    info = failure.describe(ValueError(text))

    assert "\0" not in info.message
    assert len(info.message.encode()) <= failure.MESSAGE_LIMIT
    assert len(info.traceback.encode()) <= failure.TRACEBACK_LIMIT


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    text = failure.printable("begin" + "x" * 100_000 + "the end", failure.TRACEBACK_LIMIT)

    assert text.startswith("begin")
    assert text.endswith("the end")
    assert "(cut)" in text


def test_a_recursion_error_is_described():
    def down():
        return down()

    info = failure.describe(caught(down))

    assert info.type == "RecursionError"
    assert len(info.traceback.encode()) <= failure.TRACEBACK_LIMIT


class OddKind(type):
    @property
    def __module__(cls):
        raise RuntimeError


def test_an_exception_of_an_odd_class_is_described():
    info = failure.describe(OddKind("Odd", (Exception,), {})())

    assert "cannot be shown" in info.message
    assert "Exception" in info.kinds


def test_what_wants_to_end_the_process_when_shown_is_described():
    class Leaves(Exception):
        def __str__(self) -> str:
            raise SystemExit

    assert "cannot be shown" in failure.describe(Leaves()).message


def test_text_of_a_str_that_is_more_than_text_is_its_characters():
    class Text(str):
        __slots__ = ()

        def replace(self, *_args) -> str:
            raise RuntimeError

    class Value:
        def __str__(self) -> str:
            return Text("hello")

    assert failure.text_of(Value()) == "hello"


def test_a_timeout_names_its_length():
    assert "1.5 s" in failure.timed_out(1.5).message
    assert "killed" in failure.timed_out(1.5, killed=True).message


def test_a_process_that_cannot_import_its_program_says_in_one_line_why():
    cause = "importing `shop` failed:\n\nTraceback …\n  File …\nRuntimeError: no licence"
    info = failure.unstarted("charge", Broken("invalid-app", cause, "make `import shop` work"))

    assert info.message == (
        "no process could be started for `charge`: importing `shop` failed: "
        "RuntimeError: no licence; make `import shop` work"
    )
    assert info.traceback.startswith("Traceback …")
