"""The packed values of the store, each declared once: Python and Lua read and write them by this.

A value is little-endian: its numbers, then the lengths of its texts, then the texts. What Lua
files have for it is made here and put in by `scripts.py`. A new field of a job is a line below, and
what is to be done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct, calcsize
from typing import Any

_CODES = {
    "c1": "c",
    "B": "B",
    "I2": "H",
    "I4": "I",
    "I8": "Q",
    "i8": "q",
    "c16": "16s",
    "c26": "26s",
}
"""Lua's codes, and what Python calls the same."""


def _pairs(text: str) -> dict[str, str]:
    """Read names, each with its code."""
    return dict(part.split() for part in text.split(",")) if text else {}


class Layout:
    """One kind of value: numbers, and texts with the numbers of their lengths, each with its code.

    The number `flags`, where there is one, has a bit per flag: one that is named like another field
    says whether that is there at all, and any other is true or false by itself. ``rest`` is a text
    that goes to the end, and ``head`` how many of the numbers scripts read or write by themselves.
    """

    def __init__(
        self,
        name: str,
        numbers: str,
        texts: str = "",
        flags: str = "",
        *,
        rest: str = "",
        head: int = 0,
    ) -> None:
        self.name = name
        self.numbers = _pairs(numbers)
        self.texts = _pairs(texts)
        self.flags = {flag: int(bit) for flag, bit in _pairs(flags).items()}
        self.rest = rest
        self.head = head

    @property
    def fields(self) -> dict[str, str]:
        """All that has a place of its own: the numbers and the lengths of the texts."""
        return {**self.numbers, **self.texts}

    @property
    def size(self) -> int:
        """Where the texts begin."""
        return calcsize(self._format(*self.fields))

    def at(self, name: str) -> int:
        """Where a field begins."""
        before = list(self.fields)
        return calcsize(self._format(*before[: before.index(name)]))

    def struct(self, *names: str) -> Struct:
        """Pack these fields, which follow each other."""
        return Struct(self._format(*names))

    def reader(self, *names: str) -> Struct:
        """Unpack these fields, given in their order, from a whole value."""
        codes = self.fields
        parts = [
            _CODES[code] if name in names else f"{calcsize(_CODES[code])}x"
            for name, code in codes.items()
        ]
        if [name for name in codes if name in names] != list(names):
            raise ValueError(f"{names} are no fields of a {self.name}, or not in their order")
        return Struct("<" + "".join(parts))

    def pack(self, given: Mapping[str, Any]) -> bytes:
        """Pack a whole value, its texts as bytes; what is None, or not given, is not there."""
        flags = sum(bit for name, bit in self.flags.items() if given.get(name) not in (None, False))
        texts = [given.get(name) or b"" for name in self.texts]
        numbers = [flags if name == "flags" else given.get(name) or 0 for name in self.numbers]
        fixed = self.struct(*self.fields).pack(*numbers, *map(len, texts))
        return b"".join((fixed, *texts))

    def _format(self, *names: str) -> str:
        codes = self.fields
        return "<" + "".join(_CODES[codes[name]] for name in names)

    # ── the same for Lua ─────────────────────────────────────────────────────────────────────

    @property
    def lua_readers(self) -> dict[str, str]:
        """``job_due`` and so on: what reads a field, or the size of a text, of the value ``{}``."""
        found: dict[str, str] = {}
        for place, name, code in self._lua_fields():
            at = self.at(place) + 1
            read = f"(struct.unpack('<{code}', {{}}, {at}))"
            if code == "B":
                read = f"string.byte({{}}, {at})"
            elif code[0] == "c":
                read = f"string.sub({{}}, {at}, {at - 1 + int(code[1:])})"
            found[f"{self.name}_{name}"] = read
        return found

    @property
    def lua_constants(self) -> dict[str, str]:
        """``JOB_DUE`` and so on: places, counted from 1; flags; how all and the head are packed."""
        numbers = {
            **{name: self.at(place) + 1 for place, name, _ in self._lua_fields()},
            **{f"{name}_flag": bit for name, bit in self.flags.items()},
            "texts": self.size + 1,
        }
        return {
            f"{self.name.upper()}_FORMAT": f"'<{''.join(self.fields.values())}'",
            f"{self.name.upper()}_HEAD": f"'<{''.join([*self.numbers.values()][: self.head])}'",
            **{f"{self.name}_{name}".upper(): str(number) for name, number in numbers.items()},
        }

    def lua_functions(self) -> str:
        """``unpack_job`` and ``pack_job``, from and to a table."""
        return f"{self._lua_unpack()}\n{self._lua_pack()}"

    def _lua_fields(self) -> list[tuple[str, str, str]]:
        numbers = [(name, name, code) for name, code in self.numbers.items()]
        return numbers + [(name, f"{name}_size", code) for name, code in self.texts.items()]

    def _lua_unpack(self) -> str:
        given = [f"{name} = {name}" for name in self.numbers if name != "flags"]
        lines = (
            f"local {', '.join((*self.fields, 'at'))} =",
            f"  struct.unpack({self.name.upper()}_FORMAT, value, from or 1)",
            f"local one = {{ {', '.join(given)} }}",
            *(
                f"one.{name}, at = string.sub(value, at, at + {name} - 1), at + {name}"
                for name in self.texts
            ),
            *([f"one.{self.rest} = string.sub(value, at)"] if self.rest else []),
            *(
                f"one.{name} = bit.band(flags, {bit}) ~= 0"
                + (f" and one.{name} or nil" if name in self.fields else "")
                for name, bit in self.flags.items()
            ),
            "return one, at",
        )
        return self._lua_function(f"unpack_{self.name}(value, from)", lines)

    def _lua_pack(self) -> str:
        absent = {**dict.fromkeys(self.numbers, "0"), **dict.fromkeys(self.texts, "''")}
        value = {
            name: f"one.{name}" + (f" or {nothing}" if name in self.flags else "")
            for name, nothing in absent.items()
        }
        flags = " + ".join(f"(one.{name} and {bit} or 0)" for name, bit in self.flags.items())
        numbers = [flags if name == "flags" else value[name] for name in self.numbers]
        packed = [f"{self.name.upper()}_FORMAT", *numbers, *(f"#{name}" for name in self.texts)]
        whole = [f"struct.pack({', '.join(packed)})", *self.texts]
        whole += [f"one.{self.rest}"] if self.rest else []
        lines = (
            *(f"local {name} = {value[name]}" for name in self.texts),
            f"return {' .. '.join(whole)}",
        )
        return self._lua_function(f"pack_{self.name}(one)", lines)

    @staticmethod
    def _lua_function(head: str, lines: Iterable[str]) -> str:
        return "\n".join((f"local function {head}", *(f"  {line}" for line in lines), "end"))


JOB = Layout(
    "job",
    # state: W waiting or running, B blocked, S succeeded, D dead, C cancelled, E expired. A number
    # that is not known is 0, a text that is not known is empty. From the lease to the nonce it is
    # the beginning of the last claim: see RUN.
    "state c1, flags B, lane I4, seq I8, due I8, created I8, "
    "cost I4, generation I4, attempt I4, crashes I4, losses I4, "
    "finished I8, lease I4, claimed I8, handout I8, nonce c16",
    # The first four are given by the submission and stay; the others are of the last end.
    "tenant I2, args I4, extras I4, schedule I2, "
    "error I4, worker I2, reason I4, result I4, note I2",
    # Held: when it was submitted.
    "suspect 1, at_most_once 2, result 4, reason 8, note 16, schedule 32, held 64",
    head=6,
)
"""`job:<id>`."""

RUN = Layout(
    "run",
    # started: 1 when the handler may have been called.
    "lease I4, claimed I8, handout I8, nonce c16, lease_ms I8, started B",
    rest="worker",
    head=3,
)
"""A running claim, in `run`."""

ATTEMPT = Layout(
    "attempt",
    "generation I4, lease I4, number I4, claimed I8, finished I8, nonce c16",
    "worker I2, outcome I2, error I4",
)
"""An entry of `attempts:<id>`."""

NEXT = Layout(
    "next",
    "state c1, flags B, delay I8, attempt I4, crashes I4, losses I4",
    "reason I4, result I4, note I4, error I4, version I4",
    "suspect 1, result 4, reason 8, note 16, version 32",
)
"""What a job becomes when its claim is over, as settle sends it: `Next` of model/lifecycle.py."""

SCHEDULE = Layout(
    "schedule",
    # backfilling: jobs of its backfill that have not ended; latest: due time of a run; last_due: of
    # what was fired or skipped; active and last_job: ids, NULs where there is none.
    "failures I4, backfilling I4, flags B, version I8, cursor i8, due i8, created I8, changed I8, "
    "fired I8, skipped I8, latest i8, last_due i8, active c26, last_job c26",
    "tenant I2, type I2, zones I2, hold I2, backfill I2",
    # Queues: it may have queued runs.
    "due 1, last_due 2, hold 4, queues 8",
    head=3,
)
"""`schedule:<name>`."""

LAYOUTS = {one.name: one for one in (JOB, RUN, ATTEMPT, NEXT, SCHEDULE)}
