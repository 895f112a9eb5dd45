"""One field of a cron expression: from `1-5,L` to the values it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_ITEM = re.compile(
    r"(?:(?P<all>\*)|(?P<hash>H)(?:\((?P<from>\w+)-(?P<to>\w+)\))?|(?P<low>\w+)(?:-(?P<high>\w+))?)"
    r"(?:/(?P<step>\w+))?",
    re.ASCII,
)
_PARTS = re.compile(r"\S+")
_DAY = re.compile(r"L(?:-(?P<before>\d{1,4}))?|(?P<last>LW)|(?P<near>\d{1,4})W", re.ASCII)
_WEEKDAY = re.compile(r"(?P<last>\w+?)L|(?P<nth>\w+)#(?P<place>\w*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """What may stand at one place of an expression."""

    position: int
    name: str
    low: int
    high: int
    count: int
    """How many different values there are: 0 and 7 are both Sunday."""
    names: tuple[str, ...] = ()
    hashed: tuple[int, int] | None = None
    """The values `H` chooses from, where that is not all of them."""

    @property
    def allowed(self) -> str:
        """The values in words."""
        text = f"{self.low} to {self.high}"
        return f"{text} or {self.names[0]} to {self.names[-1]}" if self.names else text


SECOND = Field(0, "second", 0, 59, 60)
MINUTE = Field(1, "minute", 0, 59, 60)
HOUR = Field(2, "hour", 0, 23, 24)
DAY = Field(3, "day-of-month", 1, 31, 31, hashed=(1, 28))
MONTH = Field(4, "month", 1, 12, 12, MONTHS)
WEEKDAY = Field(5, "day-of-week", 0, 7, 7, WEEKDAYS, hashed=(0, 6))
FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True)
class LastDay:
    """`L` and `L-3`: the last day of the month, or some days before it."""

    before: int


@dataclass(frozen=True, slots=True)
class LastWorkday:
    """`LW`: the last day of the month from Monday to Friday."""


@dataclass(frozen=True, slots=True)
class NearestWorkday:
    """`15W`: the day from Monday to Friday nearest to a day, in the same month."""

    day: int


@dataclass(frozen=True, slots=True)
class NthWeekday:
    """`FRI#2` and `FRIL`: the second, or the last, such weekday of the month."""

    weekday: int
    place: int
    """1 to 5, or 0 for the last."""


Special = LastDay | LastWorkday | NearestWorkday | NthWeekday


@dataclass(frozen=True, slots=True)
class Values:
    """What a field names: bit n of ``mask`` stands for the value n."""

    text: str
    mask: int
    specials: tuple[Special, ...] = ()
    hashed: bool = False

    @property
    def starred(self) -> bool:
        """Whether the field starts with `*`, which is what cron goes by."""
        return self.text.startswith("*")


class Reader:
    """Reads one field; knows where it stands, for its complaints."""

    __slots__ = ("_field", "_seed", "_which", "_whole")

    def __init__(self, field: Field, whole: str, which: int, seed: str) -> None:
        self._field = field
        self._whole = whole
        self._which = which
        self._seed = seed

    def read(self, text: str) -> Values:
        """Return the values, or say which part cannot be understood."""
        field = self._field
        if text == "*":
            return Values(text, (1 << field.high + 1) - (1 << field.low))
        if text.isdecimal() and len(text) < 3:
            return Values(text, 1 << self._value(text, text))
        mask, hashed, specials = 0, False, list[Special]()
        for item in text.split(","):
            special = self._special(item)
            if special is not None:
                specials.append(special)
                continue
            found = _ITEM.fullmatch(item)
            if found is None:
                raise self._not_understood(item)
            mask |= self._item(item, found)
            hashed = hashed or found["hash"] is not None
        return Values(text, mask, tuple(specials), hashed)

    # ── parts of a field ─────────────────────────────────────────────────────────────────────

    def _item(self, item: str, found: re.Match[str]) -> int:
        field = self._field
        step = self._step(item, found["step"])
        if found["hash"]:
            return self._hash(item, found, step)
        if found["all"]:
            low, high = field.low, field.high
        else:
            low = self._value(item, found["low"])
            high = low if found["high"] is None else self._end(item, low, found["high"])
            if found["high"] is None and step is not None:
                high = field.high
        mask = 0
        for value in range(low, high + 1, step or 1):
            mask |= 1 << value
        return mask

    def _hash(self, item: str, found: re.Match[str], step: int | None) -> int:
        field = self._field
        low, high = field.hashed or (field.low, field.high)
        if found["from"]:
            low = self._value(item, found["from"])
            high = self._end(item, low, found["to"])
        number = draw(self._seed, field.position)
        if step is None:
            return 1 << low + number % (high - low + 1)
        mask = 0
        # A phase behind the end of a short range would name nothing at all.
        for value in range(low + number % min(step, high - low + 1), high + 1, step):
            mask |= 1 << value
        return mask

    def _step(self, item: str, text: str | None) -> int | None:
        if text is None:
            return None
        field = self._field
        if not text.isdecimal():
            raise self._error(item, f"has the step {shown(text)}", "write a step as a number")
        step = int(text)
        if step < 1 or step > field.count:
            raise self._error(
                item,
                f"has the step {shown(text)}, but {field.name} has {field.count} values",
                f"give a step from 1 to {field.count}; for other distances use an interval",
            )
        return step

    def _value(self, item: str, text: str) -> int:
        field = self._field
        if text in field.names:
            return field.names.index(text) + field.low
        if not text.isdecimal():
            raise self._not_understood(item)
        value = int(text)
        if not field.low <= value <= field.high:
            raise self._error(
                item, f"is out of range: {field.name} is {field.allowed}", self._instead(value)
            )
        return value

    def _end(self, item: str, low: int, text: str) -> int:
        high = self._value(item, text)
        if self._field is WEEKDAY and text == "SUN" and low > 0:
            high = 7
        if high < low:
            raise self._error(
                item,
                "runs backwards",
                f"list both parts, as in {self._both_parts(item, low, high)}",
            )
        return high

    def _special(self, item: str) -> Special | None:
        if self._field is DAY and ("L" in item or "W" in item):
            return self._day(item)
        if self._field is WEEKDAY and ("L" in item or "#" in item):
            return self._weekday(item)
        return None

    def _day(self, item: str) -> Special:
        found = _DAY.fullmatch(item)
        if found is None:
            raise self._not_understood(item)
        if found["last"]:
            return LastWorkday()
        if found["near"]:
            return NearestWorkday(self._value(item, found["near"]))
        before = int(found["before"] or "0")
        if before > 30:
            raise self._error(item, "is before every month", "give L-1 to L-30")
        return LastDay(before)

    def _weekday(self, item: str) -> Special:
        found = _WEEKDAY.fullmatch(item)
        if found is None:
            raise self._not_understood(item)
        weekday = self._value(item, found["last"] or found["nth"]) % 7
        if found["last"]:
            return NthWeekday(weekday, 0)
        if found["place"] not in {"1", "2", "3", "4", "5"}:
            raise self._error(
                item,
                f"asks for number {shown(found['place'])} of the month",
                "give a number from 1 to 5, as in FRI#2, or FRIL for the last",
            )
        return NthWeekday(weekday, int(found["place"]))

    # ── complaints ───────────────────────────────────────────────────────────────────────────

    def _not_understood(self, item: str) -> InvalidOption:
        field = self._field
        return self._error(item, "cannot be understood", _remedy(field, item))

    def _error(self, item: str, cause: str, hint: str) -> InvalidOption:
        places = [found.span() for found in _PARTS.finditer(self._whole)]
        start, end = places[self._which]
        at = self._whole.find(item, start, end) + 1
        return InvalidOption(
            f"{shown(item)} in the {self._field.name} field (field {self._which + 1} of "
            f"{len(places)}, character {at}) of {shown(self._whole)} {cause}",
            hint=hint,
            value=item,
        )

    def _instead(self, value: int) -> str:
        field = self._field
        if field is HOUR and value == 24:
            return "midnight is hour 0"
        if field.low == 0 and value == 60:
            return f"{field.name} 60 is {field.name} 0 of the next"
        return f"give a value from {field.allowed}"

    def _both_parts(self, item: str, low: int, high: int) -> str:
        field = self._field
        start, _, end = item.partition("/")[0].strip("H()").partition("-")
        if field is WEEKDAY and low == 7:
            return f"0-{end}"
        if field.names and not start.isdecimal():
            return f"{start}-{'SUN' if field is WEEKDAY else field.names[-1]},{_from(field, end)}"
        return f"{low}-{field.high},{field.low}-{high}"


def draw(seed: str, position: int) -> int:
    """Return the number that `H` takes for a seed and a field, the same one for ever.

    The first eight bytes, as a big-endian number, of the SHA-256 of `position:seed` in UTF-8.
    Positions are those of six fields: second 0, minute 1, …, day-of-week 5.
    """
    text = f"{position}:{seed}".encode("utf-8", "surrogatepass")
    return int.from_bytes(sha256(text).digest()[:8], "big")


def _from(field: Field, end: str) -> str:
    first = field.names[1] if field is WEEKDAY else field.names[0]
    return end if end == first else f"{first}-{end}"


def _remedy(field: Field, item: str) -> str:
    if not item:
        return "take away the comma too many, or put a value beside it"
    if "?" in item:
        return "write * for any"
    if field is WEEKDAY and item == "L":
        return "name the weekday, as in FRIL for the last Friday of the month; Saturday is SAT"
    if field is DAY and "W" in item:
        return "W stands behind one day, as in 15W, or in LW for the last weekday of the month"
    if "L" in item or "#" in item or "W" in item:
        return "L and W belong to the day of month (L, L-3, LW, 15W), L and # to the weekday (FRIL)"
    if "H" in item and not field.names:
        return "write H, H(0-30), H/15 or H(0-30)/10"
    return f"write a value ({field.allowed}), a range a-b, a list a,b, or */n for every n-th"
