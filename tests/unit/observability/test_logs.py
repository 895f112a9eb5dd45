"""Log lines: as JSON, and for people."""

import json
import logging

import pytest

from lamplighter.observability.logs import ConsoleFormatter, JsonFormatter, neutral

JOB = {"job_id": "01J", "tenant": "acme", "attempt": 2, "type": "mail", "queue": "letters"}


def about():
    return JOB, None


def hiding():
    return JOB, lambda text: text.replace("hunter2", "***")


def record(message: object, *args: object, error: BaseException | None = None):
    exc_info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("shop.mail", logging.WARNING, __file__, 1, message, args, exc_info)
    made.created = 1_700_000_000.25
    return made


def raised(text: str) -> ValueError:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_a_line_of_json_says_when_who_what_and_about_which_job():
    line = JsonFormatter(about).format(record("sent %d", 5))
    assert json.loads(line) == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "shop.mail",
        "event": "log",
        "message": "sent 5",
        **JOB,
    }


def test_outside_of_jobs_no_job_is_named():
    assert not JOB.keys() & json.loads(JsonFormatter().format(record("hello"))).keys()


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\x1b[2J", "\u2028", "\ud800", 'q"q\\'])
def test_a_line_of_json_is_one_line_whatever_it_says(text):
    line = JsonFormatter(about).format(record(text))
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line
    line.encode()
    assert json.loads(line)["event"] == "log"


def test_an_exception_stands_beside_the_message():
    found = json.loads(JsonFormatter().format(record("it failed", error=raised("boom"))))
    assert found["message"] == "it failed"
    assert found["exception"].endswith("ValueError: boom")


@pytest.mark.parametrize("formatter", [JsonFormatter(hiding), ConsoleFormatter(hiding)])
def test_secrets_are_hidden_in_message_and_exception(formatter):
    line = formatter.format(record("it is hunter2", error=raised("hunter2!")))
    assert "hunter2" not in line
    assert line.count("***") == 2


def test_secrets_are_hidden_in_events_of_structlog():
    line = JsonFormatter(hiding).format(record({"event": "it is hunter2"}))
    assert "hunter2" not in line
    assert json.loads(line)["event"] == "it is ***"


def test_an_event_of_structlog_is_named():
    found = json.loads(JsonFormatter().format(record({"event": "paid", "card": "4711"})))
    assert (found["event"], found["message"]) == ("paid", "paid")
    assert "4711" not in str(found)


def test_arguments_that_do_not_fit_are_no_reason_to_fail():
    assert json.loads(JsonFormatter().format(record("%d", "x")))["message"] == "%d"


def test_a_line_for_people_stays_on_its_line():
    line = ConsoleFormatter(about).format(record("bad\r\n2023 ERROR forged \x1b[31mred\x9b\u202e"))
    assert line == (
        "2023-11-14T22:13:20.250Z WARNING  shop.mail: "
        r"bad\r\n2023 ERROR forged \x1b[31mred\x9b\x202e "
        "job_id=01J tenant=acme attempt=2 type=mail queue=letters"
    )


def test_names_cannot_break_the_line_either():
    def hostile():
        return {"tenant": "a\nb"}, None

    assert r"tenant=a\nb" in ConsoleFormatter(hostile).format(record("x"))


def test_the_lines_of_a_traceback_are_set_in():
    first, *rest = ConsoleFormatter().format(record("no", error=raised("a\x1bb"))).splitlines()
    assert first.endswith("shop.mail: no")
    assert rest[-1] == r"    ValueError: a\x1bb"
    assert all(line.startswith("    ") for line in rest)


def test_plain_text_stays_as_it_is():
    assert neutral("naïve → ✓") == "naïve → ✓"
