"""Job ids: 26 characters outside, a `uuid` in the database.

Verbs hand whole lists over as ``uuids(ids)`` and single ids as ``uuid(id)``. A `uuid` column comes
back as text by itself. What cannot be an id becomes NULL, which no job has: it is unknown.

A character of an id stands for five bits, so 32 characters are 20 bytes: exactly the four bytes
of length and the 16 of the value that an element of an array takes in PostgreSQL's binary format.
That makes a list of ids one number to Python, which it reads and writes without a loop of ours.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from psycopg import pq
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Dumper, Loader

UUID = 2950
UUID_ARRAY = 2951

_ALPHABET = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
# Whatever is no character of an id becomes one that is no digit either.
_TO_DIGITS = bytes(
    _DIGITS[_ALPHABET.index(byte)] if byte in _ALPHABET else ord("!") for byte in range(256)
)
_TO_TEXT = _ALPHABET + bytes(224)
_PAIRS = [chr(high) + chr(low) for high in _ALPHABET for low in _ALPHABET]
_LENGTH = 26
_SIXTEEN = "000004"
"""The length of a uuid, as the characters before it: 30 bits of them, and two zeros of the id."""
_HEADER = struct.Struct(">iiIii")
_ELEMENT = 20
_PARTS = struct.Struct(">BBIBIBI")


class Uuid(bytes):
    """One id as the driver sends it; empty is NULL."""

    __slots__ = ()


class Uuids(bytes):
    """A list of ids as the driver sends it: an array, ready made."""

    __slots__ = ()


def uuid(job_id: str) -> Uuid | None:
    """Return an id as a parameter, or None if it cannot be one."""
    try:
        return Uuid(_elements((job_id,))[4:])
    except ValueError:
        return None


def uuids(job_ids: Sequence[str]) -> Uuids:
    """Return a list of ids as one parameter, in the same order."""
    if not job_ids:
        return Uuids(_HEADER.pack(0, 0, UUID, 0, 1)[:12])
    try:
        return Uuids(_HEADER.pack(1, 0, UUID, len(job_ids), 1) + _elements(job_ids))
    except ValueError:
        values = [uuid(job_id) for job_id in job_ids]
        null = struct.pack(">i", -1)
        return Uuids(
            _HEADER.pack(1, 1, UUID, len(values), 1)
            + b"".join(null if one is None else struct.pack(">i", 16) + one for one in values)
        )


def text(value: bytes) -> str:
    """Write 16 bytes as an id."""
    pairs = _PAIRS
    first, a, b, c, d, e, f = _PARTS.unpack(value)
    return (
        f"{pairs[first]}{pairs[a << 2 | b >> 30]}{pairs[b >> 20 & 1023]}{pairs[b >> 10 & 1023]}"
        f"{pairs[b & 1023]}{pairs[c << 2 | d >> 30]}{pairs[d >> 20 & 1023]}"
        f"{pairs[d >> 10 & 1023]}{pairs[d & 1023]}{pairs[e << 2 | f >> 30]}"
        f"{pairs[f >> 20 & 1023]}{pairs[f >> 10 & 1023]}{pairs[f & 1023]}"
    )


def texts(values: Sequence[bytes]) -> list[str]:
    """Write many ids at once; for answers with hundreds of them, read as `uuid_send(id)`.

    Every five bytes are put into eight, and their eight groups of five bits then moved apart in
    three steps, each for all ids together.
    """
    count = len(values)
    if count < 8:
        return [text(value) for value in values]
    packed = b"\0\0\0\0" + b"\0\0\0\0".join(values)
    wide = bytearray(32 * count)
    for place in range(5):
        wide[place + 3 :: 8] = packed[place::5]
    number = int.from_bytes(wide, "big")
    for high, low, shift in _masks(count):
        number = (number & high) << shift | number & low
    joined = number.to_bytes(32 * count, "big").translate(_TO_TEXT).decode("ascii")
    return [joined[start + 6 : start + 32] for start in range(0, 32 * count, 32)]


@lru_cache(maxsize=64)
def _masks(count: int) -> list[tuple[int, int, int]]:
    """Which bits move, which stay, and by how much, for this many ids."""
    return [
        (
            int.from_bytes(high.to_bytes(8, "big") * (4 * count), "big"),
            int.from_bytes(low.to_bytes(8, "big") * (4 * count), "big"),
            shift,
        )
        for high, low, shift in (
            (0x000000FFFFF00000, 0x00000000000FFFFF, 12),
            (0x000FFC00000FFC00, 0x000003FF000003FF, 6),
            (0x03E003E003E003E0, 0x001F001F001F001F, 3),
        )
    ]


def _elements(job_ids: Sequence[str]) -> bytes:
    """Return the elements of an array; ValueError if one of them is no id."""
    if set(map(len, job_ids)) != {_LENGTH} or max(job_ids) >= "8":
        raise ValueError
    digits = (_SIXTEEN + _SIXTEEN.join(job_ids)).encode("ascii").translate(_TO_DIGITS)
    return int(digits, 32).to_bytes(_ELEMENT * len(job_ids), "big")


class _UuidDumper(Dumper):
    format = pq.Format.BINARY
    oid = UUID

    def dump(self, obj: Uuid) -> bytes:
        return obj


class _UuidsDumper(_UuidDumper):
    oid = UUID_ARRAY


class _IdLoader(Loader):
    format = pq.Format.BINARY

    def load(self, data: Buffer) -> str:
        return text(bytes(data))


def register(context: AdaptContext) -> None:
    """Teach a connection these ids."""
    context.adapters.register_dumper(Uuid, _UuidDumper)
    context.adapters.register_dumper(Uuids, _UuidsDumper)
    context.adapters.register_loader(UUID, _IdLoader)
