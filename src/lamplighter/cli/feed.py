"""Events as people read them: one line each, terse, with the words they know from the states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from lamplighter import runtime
from lamplighter.cli.output import STYLES, clock, first_line, instant, printable, span, tell
from lamplighter.cli.output import cause as cause_of
from lamplighter.model.counts import counted
from lamplighter.observability import events, logs

Fields = Mapping[str, Any]

_WORD = 10

CAUSE = 500
"""Characters of a cause that are shown: it has to name the remedy."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event, put into words."""

    at_ms: int
    word: str
    text: str
    style: str = ""
    failure: bool = False
    """Whether it belongs among the failures."""

    def __str__(self) -> str:
        return f"{clock(self.at_ms)} {self.word:<{_WORD}} {self.text}"


class Feed:
    """Puts events into words. ``speed`` turns shortened delays back into the program's own."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed

    def line(self, name: str, fields: Fields) -> Line | None:
        """Return the line of an event, or None for events that would only be noise."""
        if name == events.JOB_SETTLED:
            return self._settled(fields)
        write = _WRITERS.get(name)
        return None if write is None else _line(*write(fields))

    def _settled(self, fields: Fields) -> Line:
        outcome, state = str(fields.get("outcome")), str(fields.get("state"))
        word = _word(outcome, state)
        about = [f"tenant={fields['tenant']}", f"attempt={fields.get('attempt', 1)}"]
        if word in {"retrying", "snoozed", "abandoned"}:
            about.append(f"again in {span(self._own_time(fields.get('delay_ms', 0)))}")
        elif fields.get("seconds"):
            about.append(span(fields["seconds"]))
        cause = fields.get("error") or fields.get("reason")
        if word != "succeeded" and cause:
            about.append(f"· {first_line(short_error(str(cause)))}")
        text = f"{fields['type']}  {fields['job_id']}  {' '.join(about)}"
        style = STYLES.get(word, "magenta")
        return _line(word, text, style, failure=word in {"retrying", "dead"})

    def _own_time(self, delay_ms: int) -> float:
        """Turn a delay back into seconds of the program's time.

        It was rounded up to milliseconds when it was divided: the roundest of the times that it
        may have been is meant.
        """
        least, most = (delay_ms - 1) * self._speed / 1000, delay_ms * self._speed / 1000
        if self._speed == 1:
            return most
        rounded = (most // unit * unit for unit in (3600, 60, 1))
        return next((seconds for seconds in rounded if seconds > least), most)


def short_error(text: str) -> str:
    """Leave out the module of an error's type, which its traceback tells."""
    kind, colon, message = text.partition(": ")
    return f"{kind.rpartition('.')[2]}{colon}{message}" if " " not in kind else text


def short_cause(text: str) -> str:
    """Return what an error says first, and the end of its traceback, which says most."""
    return cause_of(text, CAUSE)


def _word(outcome: str, state: str) -> str:
    if state != "waiting":
        return state
    return "retrying" if outcome in {"failed", "timed_out"} else outcome


def _line(word: str, text: str, style: str = "", *, failure: bool = False) -> Line:
    return Line(runtime.now_ms(), word, printable(text), style, failure)


def _submitted(fields: Fields) -> tuple[str, str, str]:
    created, total = fields.get("created", 0), fields.get("count", 0)
    again = f", {total - created} known before" if created != total else ""
    types = ", ".join(fields.get("types", ())) or "jobs"
    return "submitted", f"{created} × {types}{again}", "cyan"


def _cancelled(fields: Fields) -> tuple[str, str, str]:
    return "cancel", f"{fields.get('job_id')}  {fields.get('answer')}", "magenta"


def _rescued(fields: Fields) -> tuple[str, str, str]:
    jobs = counted(fields.get("count", 0), "job")
    return "rescued", f"{jobs} of workers that vanished", "yellow"


def _unfit(fields: Fields) -> tuple[str, str, str]:
    return "dead", f"{fields.get('type')}  {fields.get('job_id')}  · {fields.get('reason')}", "red"


def _lease_lost(fields: Fields) -> tuple[str, str, str]:
    # Nobody need have taken it: the store may have been away for as long as the lease.
    text = "its lease has ended, or another worker has it: what came of it is not written"
    return "lost", f"{fields.get('job_id')}  {text}", "red"


def _worker_started(fields: Fields) -> tuple[str, str, str]:
    serves = f"{fields.get('worker')} serves {', '.join(fields.get('queues', ()))}"
    where = f" on {fields['store']}" if fields.get("store") else ""
    return "worker", f"{serves}{where}", "dim"


def _worker_stopping(fields: Fields) -> tuple[str, str, str]:
    running, jobs = fields.get("running", 0), fields.get("jobs", ())
    if not running:
        return "stopping", "no job runs", "dim"
    named = ", ".join(f"{job['type']} {job['job_id']} for {span(job['seconds'])}" for job in jobs)
    more = f" and {running - len(jobs):,} more" if running > len(jobs) else ""
    left = span(max(0.0, fields.get("seconds", 0.0)))
    text = (
        f"waits at most {left} for {counted(running, 'job')}: {named}{more}; another signal hurries"
    )
    return "stopping", text, "yellow"


def _worker_stopped(fields: Fields) -> tuple[str, str, str]:
    return "stopped", f"{fields.get('worker')}", "dim"


def _worker_warned(fields: Fields) -> tuple[str, str, str]:
    return "warning", f"{fields.get('text')}", "yellow"


def _worker_scaled(fields: Fields) -> tuple[str, str, str]:
    size = counted(fields.get("size", 0), "child", "children")
    return "scaled", f"from {fields.get('before')} to {size}: {fields.get('reason')}", "cyan"


def _worker_reloaded(fields: Fields) -> tuple[str, str, str]:
    children = counted(fields.get("children", 0), "child is", "children are")
    return "reload", f"{children} replaced one by one", "cyan"


def _child_started(fields: Fields) -> tuple[str, str, str]:
    return "child", f"pid {fields.get('pid')} is ready", "dim"


def _child_retired(fields: Fields) -> tuple[str, str, str]:
    why = f" · {fields['why']}" if fields.get("why") else ""
    return "child", f"pid {fields.get('pid')} finishes its jobs and ends{why}", "dim"


def _child_died(fields: Fields) -> tuple[str, str, str]:
    waiting = counted(fields.get("unstarted", 0), "waiting job")
    left = f"{fields.get('started')} running and {waiting} given back"
    why = f" · {short_cause(str(fields['error']))}" if fields.get("error") else ""
    text = f"pid {fields.get('pid')} ended with status {fields.get('status')}, {left}{why}"
    return "child died", text, "bold red"


def _isolated(fields: Fields) -> tuple[str, str, str]:
    lasting = span(fields.get("seconds", 0))
    how = f" · {first_line(str(fields['how']))}" if fields.get("how") else ""
    return "isolated", f"jobs of {fields.get('type')} run alone for {lasting}{how}", "yellow"


def _silent(fields: Fields) -> tuple[str, str, str]:
    return "silent", f"{fields.get('worker')} for {span(fields.get('seconds', 0))}", "yellow"


def _service_error(fields: Fields) -> tuple[str, str, str]:
    return "trouble", f"{fields.get('service')}: {short_cause(str(fields.get('error')))}", "red"


def _pruned(fields: Fields) -> tuple[str, str, str]:
    return "pruned", f"{counted(fields.get('jobs', 0), 'job')} past retention", "dim"


def _jumped(fields: Fields) -> tuple[str, str, str]:
    late = span(abs(fields.get("seconds", 0)))
    why = "the clock was set, the machine slept, or the store was away"
    return "late", f"the search for lost jobs, by {late}: {why}; workers get a lease more", "yellow"


def _log_large(fields: Fields) -> tuple[str, str, str]:
    size = fields.get("bytes", 0) / 1_000_000
    return "log large", f"{fields.get('path')} has {size:,.0f} MB; is a reader stuck?", "yellow"


def _fired(fields: Fields) -> tuple[str, str, str]:
    return "fired", f"{counted(fields.get('count', 0), 'job')} of schedules", "dim"


def _behind(fields: Fields) -> tuple[str, str, str]:
    if not fields.get("behind"):
        return "on time", "schedules are fired as they fall due again", "dim"
    lag = span(fields.get("lag_ms", 0) / 1000)
    return "behind", f"schedules fall due faster than they are fired: {lag} late", "yellow"


def _schedule_held(fields: Fields) -> tuple[str, str, str]:
    return "held", f"schedule {fields.get('schedule')}: {fields.get('reason')}", "magenta"


def _replanned(fields: Fields) -> tuple[str, str, str]:
    schedules = counted(fields.get("count", 0), "schedule")
    text = f"{schedules} by time zone data {fields.get('zones')}"
    return "replanned", text, "dim"


def _stuck(fields: Fields) -> tuple[str, str, str]:
    text = f"{fields.get('service')} made no progress for {span(fields.get('seconds') or 0)}"
    return "stuck", f"{text} and begins anew", "red"


def _health(fields: Fields) -> tuple[str, str, str]:
    if fields.get("well"):
        return "well", f"{fields.get('worker')} is well again", "dim"
    return "unwell", f"{fields.get('worker')}: {'; '.join(fields.get('why', ()))}", "red"


def _metrics(fields: Fields) -> tuple[str, str, str]:
    return "metrics", f"at {fields.get('url')}", "dim"


_WRITERS: Mapping[str, Callable[[Fields], tuple[str, str, str]]] = {
    events.JOB_SUBMITTED: _submitted,
    events.JOB_CANCELLED: _cancelled,
    events.JOB_RESCUED: _rescued,
    events.JOB_UNFIT: _unfit,
    events.LEASE_LOST: _lease_lost,
    events.WORKER_STARTED: _worker_started,
    events.WORKER_STOPPING: _worker_stopping,
    events.WORKER_STOPPED: _worker_stopped,
    events.WORKER_WARNED: _worker_warned,
    events.WORKER_SCALED: _worker_scaled,
    events.WORKER_RELOADED: _worker_reloaded,
    events.CHILD_STARTED: _child_started,
    events.CHILD_RETIRED: _child_retired,
    events.CHILD_DIED: _child_died,
    events.TYPE_ISOLATED: _isolated,
    events.LOOP_SILENT: _silent,
    events.SERVICE_ERROR: _service_error,
    events.PRUNED: _pruned,
    events.CLOCK_JUMPED: _jumped,
    events.STORE_LOG_LARGE: _log_large,
    events.SCHEDULES_FIRED: _fired,
    events.SCHEDULES_BEHIND: _behind,
    events.SCHEDULE_HELD: _schedule_held,
    events.SCHEDULES_REPLANNED: _replanned,
    events.SERVICE_STUCK: _stuck,
    events.HEALTH_CHANGED: _health,
    events.METRICS_SERVED: _metrics,
}

_WARNS = frozenset(
    {
        events.WORKER_WARNED,
        events.JOB_RESCUED,
        events.TYPE_ISOLATED,
        events.LOOP_SILENT,
        events.CLOCK_JUMPED,
        events.STORE_LOG_LARGE,
        events.SCHEDULES_BEHIND,
    }
)
"""Events in yellow that are warnings in a log, too."""


class Printer:
    """Prints events as they come: a line each, or a JSON object each."""

    def __init__(
        self, *, speed: float = 1.0, as_json: bool = False, log_format: str = "console"
    ) -> None:
        self.closed = False
        """Whether the reader of our output has gone."""
        self.on_closed: Callable[[], None] | None = None
        self._feed = Feed(speed)
        self._as_json = as_json
        self._log_format = log_format

    def on_event(self, name: str, fields: Fields) -> None:
        """Print one event, if it is worth a line."""
        line = self._feed.line(name, fields)
        if line is None:
            return
        if self._log_format == "json":
            self.tell(logs.line_of(_logged(name, line, fields)))
        elif self._as_json:
            document = {"at": instant(line.at_ms), "event": name, **fields}
            self.tell(logs.json_text(document))
        else:
            word = click.style(f"{line.word:<{_WORD}}", **_click_style(line.style))
            self.tell(f"{clock(line.at_ms)} {word} {line.text}")

    def tell(self, text: str, *, err: bool = False) -> None:
        """Print a line; the first one that nobody reads is told to ``on_closed``."""
        if not tell(text, err=err) and not self.closed:
            self.closed = True
            if self.on_closed is not None:
                self.on_closed()


def _logged(name: str, line: Line, fields: Fields) -> dict[str, Any]:
    """Return an event the form that log lines have."""
    head = {
        "ts": logs.timestamp(line.at_ms / 1000),
        "level": "warning" if line.failure or "red" in line.style or name in _WARNS else "info",
        "logger": "lamplighter.worker",
        "event": name,
        "message": f"{line.word} {line.text}",
    }
    return {**head, **{each: value for each, value in fields.items() if each not in head}}


def _click_style(style: str) -> dict[str, Any]:
    words = style.split()
    colour = next((word for word in words if word not in {"bold", "dim"}), None)
    return {"fg": colour, "bold": "bold" in words or None, "dim": "dim" in words or None}
