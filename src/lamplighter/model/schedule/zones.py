"""Time zones from the `tzdata` package, and from nowhere else.

The zones of the machine may be older or newer than those of its neighbour. Schedules have to mean
the same on every node, so all of them read the data they were installed with.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule import tzif
from lamplighter.model.schedule.timeline import Timeline

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_PACKAGE = "tzdata"


def zone(name: str) -> ZoneInfo:
    """Return the zone of this name, for showing instants in it."""
    return _zone(check_zone(name))


def timeline(name: str) -> Timeline:
    """Return all changes of the clocks of the zone of this name."""
    return _timeline(check_zone(name))


@cache
def tzdata_version() -> str:
    """Return the version of the time zone database, as in ``2026a``."""
    return str(import_module(_PACKAGE).IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones there are."""
    return frozenset(_read("zones").decode("utf-8").split())


def check_zone(name: object) -> str:
    """Return a known zone's name, or say which was probably meant."""
    if isinstance(name, str) and name in zone_names():
        return name
    raise InvalidOption(f"there is no time zone {shown(name)}", hint=_hint(name), value=name)


def _hint(name: object) -> str:
    if not isinstance(name, str):
        return "give the name of a zone as text, as in 'Europe/Berlin'"
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for complaints

    wanted = name.strip().replace(" ", "_").casefold()
    if wanted in {"", "local", "localtime"}:
        return (
            "name the zone, as in 'Europe/Berlin' or 'UTC'; the zone of a machine is not used, "
            "because each node may have another"
        )
    known = {one.casefold(): one for one in sorted(zone_names())}
    cities = {one.rpartition("/")[2]: full for one, full in known.items()}
    near = [known[one] for one in get_close_matches(wanted[:64], known, 3, 0.75)]
    near += [cities[one] for one in get_close_matches(wanted[:64], cities, 3, 0.75)]
    found = list(dict.fromkeys(near))[:3]
    if found:
        return f"did you mean {' or '.join(found)}?"
    return "use a name of the IANA time zone database, as in 'Europe/Berlin' or 'UTC'"


@cache
def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - needed only where instants are shown

    return ZoneInfo.from_file(BytesIO(_read("zoneinfo", *name.split("/"))), key=name)


@cache
def _timeline(name: str) -> Timeline:
    return tzif.read(_read("zoneinfo", *name.split("/")))


def _read(*path: str) -> bytes:
    """Read a file of the package. Its path is made of known names only."""
    from importlib.resources import files  # noqa: PLC0415 - dear to import

    return files(_PACKAGE).joinpath(*path).read_bytes()
