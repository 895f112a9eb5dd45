"""Zones come from the pinned data, and our reading of it is that of zoneinfo."""

from datetime import timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
import tzdata

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import EPOCH, tzdata_version, zone
from lamplighter.model.schedule.instants import DAY, FIRST, LAST
from lamplighter.model.schedule.zones import timeline, zone_names


def test_the_version_is_that_of_the_package():
    assert tzdata_version() == tzdata.IANA_VERSION


def test_a_zone_is_read_once():
    assert zone("Europe/Berlin") is zone("Europe/Berlin")
    assert isinstance(zone("Europe/Berlin"), ZoneInfo)
    assert str(zone("Europe/Berlin")) == "Europe/Berlin"


def test_zones_do_not_come_from_the_machine(monkeypatch):
    monkeypatch.setenv("PYTHONTZPATH", "/nonexistent")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert timeline("UTC").offset(0) == 0


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("local", "each node"),
        ("", "each node"),
        ("localtime", "each node"),
        ("../x", "IANA"),
        ("/etc/localtime", "IANA"),
        ("Europe/../Europe/Berlin", "Europe/Berlin"),
        ("Europe", "IANA"),
        ("x" * 10_000, "IANA"),
        ("Europe/Berlin\0", "Europe/Berlin"),
        (None, "as text"),
    ],
)
def test_unknown_zones_are_refused_with_the_nearest(name, word):
    with pytest.raises(InvalidOption) as caught:
        zone(name)
    assert word in caught.value.hint or word == "IANA"


def _each_zone(number: int) -> list[str]:
    return sorted(zone_names())[number::8]


@pytest.mark.parametrize("eighth", range(8))
def test_offsets_are_those_of_zoneinfo_around_every_change_and_anywhere(eighth):
    chance = Random(eighth)
    for name in _each_zone(eighth):
        line, place = timeline(name), zone(name)
        near = [at + step for at in line.times if at < 2**33 for step in (-1, 0)]
        far = [chance.randint(FIRST + 2 * DAY, LAST - 2 * DAY) for _ in range(50)]
        for at in [*near, *far]:
            if FIRST + 2 * DAY < at < LAST - 2 * DAY:
                offset = (EPOCH + timedelta(seconds=at)).astimezone(place).utcoffset()
                assert offset == timedelta(seconds=line.offset(at)), (name, at)


def test_changes_are_much_further_apart_than_they_are_wide():
    # What `walls` relies on: no wall time is touched by two changes.
    for name in zone_names():
        line = timeline(name)
        widths = [abs(b - a) for a, b in pairwise(line.offsets)]
        for (a, b), width in zip(pairwise(line.times), pairwise(widths), strict=False):
            assert b - a > 10 * max(width), (name, a)


def test_walls_are_found_where_they_are_first_shown():
    line = timeline("Europe/Berlin")
    for at in (0, 1_774_746_000, 1_792_890_000, 50_000_000_000):
        number, shift = line.stretch(at)
        wall = at + line.offsets[number]
        again, moved = line.place(wall)
        assert wall - line.offsets[again] <= at
        assert shift == moved
