"""Calendars as plain data, for the store.

What is stored is what was written: the expression and the zone. Instants are worked out from them
again and again, since governments change the clocks after schedules were made.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, cast

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.combine import MOST_PARTS, Except, Union
from lamplighter.model.schedule.cron import Cron
from lamplighter.model.schedule.days import Days
from lamplighter.model.schedule.interval import Interval
from lamplighter.model.schedule.once import Once
from lamplighter.model.schedule.rrule import RRule

_HINT = "give what encode(calendar) made"


def encode(calendar: Calendar) -> dict[str, Any]:
    """Return a calendar as data for JSON. The seed is not in it: it is the schedule's own name."""
    match calendar:
        case Cron():
            return {"kind": "cron", "expression": calendar.expression, **_clocks(calendar)}
        case RRule():
            start = calendar.start.isoformat()
            return {"kind": "rrule", "text": calendar.text, "start": start, **_clocks(calendar)}
        case Interval():
            seconds = calendar.every.days * 86_400 + calendar.every.seconds
            return {"kind": "interval", "every": seconds, "anchor": calendar.anchor.isoformat()}
        case Once(at):
            return {"kind": "once", "at": at.isoformat()}
        case Days(dates, timezone):
            names = [one.isoformat() for one in dates]
            return {"kind": "days", "dates": names, "timezone": timezone}
        case Union(parts):
            return {"kind": "union", "parts": [encode(part) for part in parts]}
        case Except(base, excluded):
            left_out = [encode(part) for part in excluded]
            return {"kind": "except", "base": encode(base), "excluded": left_out}
        case _:
            raise InvalidOption(
                f"{shown(calendar)} cannot be stored",
                hint="use Cron, Interval, Once, RRule, Union, Except or Days",
                value=calendar,
            )


def decode(document: Mapping[str, Any], seed: str = "", *, stored: bool = False) -> Calendar:
    """Return the calendar that was encoded; ``seed`` decides what `H` stands for in it.

    ``stored``: it was made from what is stored, and so checked before. Nothing is searched for:
    whether a rule ever fires, and all that its COUNT names, is for those to find out who ask it.
    """
    return _decode(document, seed, RRule.stored if stored else RRule, 0)


def _decode(document: object, seed: str, rule: Callable[..., RRule], depth: int) -> Calendar:
    if not isinstance(document, Mapping) or depth > MOST_PARTS:
        text = _sketch(cast("object", document))
        raise InvalidOption(f"{text} is not a calendar as data", hint=_HINT, value=text)
    data = cast("Mapping[str, Any]", document)
    try:
        match data["kind"]:
            case "cron":
                return Cron(data["expression"], seed=seed, **_policy(data))
            case "rrule":
                start = datetime.fromisoformat(data["start"])
                return rule(data["text"], start=start, **_policy(data))
            case "interval":
                return Interval(data["every"], anchor=datetime.fromisoformat(data["anchor"]))
            case "once":
                return Once(datetime.fromisoformat(data["at"]))
            case "days":
                dates = [date.fromisoformat(one) for one in data["dates"]]
                return Days(dates, data["timezone"])
            case "union":
                return Union(*(_decode(part, seed, rule, depth + 1) for part in data["parts"]))
            case "except":
                left_out = [_decode(part, seed, rule, depth + 1) for part in data["excluded"]]
                return Except(_decode(data["base"], seed, rule, depth + 1), *left_out)
            case kind:
                raise InvalidOption(
                    f"there is no calendar of the kind {shown(kind)}",
                    hint=f"{_HINT}; a newer version may have written it",
                    value=kind,
                )
    except KeyError as error:
        raise InvalidOption(
            f"the calendar {_sketch(data)} lacks {shown(error.args[0])}", hint=_HINT, value=data
        ) from None
    except InvalidOption:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            f"the calendar {_sketch(data)} cannot be read: {error}", hint=_HINT, value=data
        ) from None


def _sketch(document: object) -> str:
    """Show the beginning of data that may be deeper than Python can show."""
    return shown(reprlib.repr(document))


def _clocks(calendar: Cron | RRule) -> dict[str, str]:
    return {
        "timezone": calendar.timezone,
        "gap": calendar.gap,
        "overlap": calendar.overlap,
    }


def _policy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("timezone", "gap", "overlap")}
