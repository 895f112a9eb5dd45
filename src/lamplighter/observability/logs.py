"""Log lines for people or for programs, each with the job it is about.

JSON has one object per line: `ts`, `level`, `logger`, `event`, `message`; and inside a job
`job_id`, `tenant`, `attempt`, `type` and `queue`. What a program logs is shown as it is, apart from
what could pass for another line or move a terminal's cursor; arguments of jobs are never added.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from lamplighter import runtime
from lamplighter.observability import outlet

Subject = tuple[Mapping[str, object], Callable[[str], str] | None]
"""What a line is about, and what hides in its text that must not be shown."""
About = Callable[[], Subject]

FIELDS = "lamplighter_fields"
"""Attribute of records of our own: what a line of JSON says of them beside the message."""
LOG = "log"
"""The event of lines that name none."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = logging.Formatter()


def nothing() -> Subject:
    """Say that a line is about no job."""
    return {}, None


def neutral(text: str) -> str:
    """Return a text that is one line and moves no cursor: what could is written out."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else _NAMED.get(each) or f"\\x{ord(each):02x}" for each in text
    )


def timestamp(seconds: float) -> str:
    """Write an instant in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def json_text(document: object, *, indent: int | None = None) -> str:
    """Write JSON in which every character that a terminal may obey is escaped.

    JSON itself escapes only those below U+0020. C1 controls, marks that turn the direction of
    writing and halves of surrogate pairs are escaped here; values that JSON does not know are
    written as text.
    """
    text = json.dumps(document, ensure_ascii=False, default=str, indent=indent)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text
    )


def line_of(fields: Mapping[str, object]) -> str:
    """Write one object of JSON on a line; what cannot be written as such is written as text."""
    return json_text(fields)


class Said(NamedTuple):
    """What a record says, without what must not be shown."""

    event: str
    message: str
    trace: str
    fields: Mapping[str, object]


class _Formatter(logging.Formatter):
    def __init__(self, about: About = nothing) -> None:
        super().__init__()
        self._about = about

    def said(self, record: logging.LogRecord) -> Said:
        """Take a record apart, and hide in all of it what must not be shown."""
        fields, redact = self._about()
        named, message = _message(record)
        trace = _trace(record)
        if redact is not None:
            message, trace = redact(message), redact(trace)
        return Said(message if named else LOG, message, trace, fields)


class JsonFormatter(_Formatter):
    """Writes a record as one object of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said = self.said(record)
        document: dict[str, object] = {
            "ts": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": said.event,
            "message": said.message,
            **said.fields,
            **getattr(record, FIELDS, {}),
        }
        if said.trace:
            document["exception"] = said.trace
        return line_of(document)


class ConsoleFormatter(_Formatter):
    """Writes a record as one line; the lines of a traceback follow, set in."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said = self.said(record)
        about = "".join(f" {name}={neutral(str(value))}" for name, value in said.fields.items())
        head = f"{timestamp(record.created)} {record.levelname:<8} {neutral(record.name)}"
        line = f"{head}: {neutral(said.message)}{about}"
        return "\n".join([line, *(f"    {neutral(each)}" for each in said.trace.splitlines())])


def _message(record: logging.LogRecord) -> tuple[bool, str]:
    """Return the message, and whether it names an event: those of structlog come as a mapping."""
    given = cast("object", record.msg)
    if isinstance(given, dict) and "event" in given and not record.args:
        return True, str(cast("Mapping[str, object]", given)["event"])
    try:
        return False, record.getMessage()
    except Exception:  # noqa: BLE001 - arguments that do not fit; the text is better than nothing
        return False, str(record.msg)


def _trace(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[0] is not None:
        return _PLAIN.formatException(record.exc_info)
    return record.exc_text or ""


def dropped_line(lines: int, size: int) -> str:
    """Say as JSON that output was dropped: an `outlet.Notice`."""
    return line_of(
        {
            "ts": timestamp(runtime.now_ms() / 1000),
            "level": "warning",
            "logger": "lamplighter.output",
            "event": "output.dropped",
            "message": outlet.plain_notice(lines, size),
            "lines": lines,
            "bytes": size,
        }
    )


def install(log_format: str, about: About = nothing) -> None:
    """Let this process log in a format; call it after the program was imported.

    `console` changes only what is logged by programs that have not set up logging: warnings and
    worse, on stderr. With `json` all that goes to the streams of the process through the root
    logger becomes JSON, from INFO on; other handlers of the program stay as they are.
    """
    if log_format == "console":
        if logging.lastResort is not None:
            logging.lastResort.setFormatter(ConsoleFormatter(about))
        return
    outlet.notice = dropped_line
    root = logging.getLogger()
    for handler in list(root.handlers):
        if type(cast("Any", handler)) is logging.StreamHandler:
            root.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(about))
    root.addHandler(handler)
    if root.level in (logging.NOTSET, logging.WARNING):
        root.setLevel(logging.INFO)
