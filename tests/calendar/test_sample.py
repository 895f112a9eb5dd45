"""A seeded piece of the sweep; `make calendar` does all of it."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.calendar import comparison
from tests.calendar.subject import resolved
from tests.calendar.sweep import run, tasks

SEED = 20


@pytest.mark.parametrize(
    ("part", "count"),
    [("tables", 40), ("expressions", 3), ("dates", 40), ("other years", 40), ("odd changes", 4)],
)
def test_the_calendar_agrees_with_the_oracle(part, count):
    result = run(tasks(SEED, part, count=count), jobs=1)

    assert result.cases >= count
    assert not result.differences, "\n".join(map(str, result.differences[:3]))


def test_odd_changes_are_among_those_asked_about():
    asked = {task.zone for task in tasks(SEED, "expressions")}

    assert {"Pacific/Apia", "Australia/Lord_Howe", "Antarctica/Troll"} <= asked
    assert len(tasks(SEED, "expressions")) >= 200


@pytest.mark.parametrize(
    ("fault", "call"),
    [("next_after", "next_after"), ("previous_before", "previous_before"), ("between", "between")],
)
def test_a_calendar_that_is_wrong_in_one_way_is_found_out(monkeypatch, fault, call):
    right = comparison.Cron

    class Wrong(right):
        pass

    def late(self, *arguments):
        found = getattr(right, fault)(self, *arguments)
        return list(found)[:-1] if fault == "between" else found + timedelta(seconds=1)

    setattr(Wrong, fault, late)
    case = comparison.Case(
        expression="30 2 * * *",
        zone="Europe/Berlin",
        gap="skip",
        overlap="first",
        after=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 1, 2, 12, tzinfo=UTC),
    )
    wanted = [datetime(2026, 1, 1, 1, 30, tzinfo=UTC), datetime(2026, 1, 2, 1, 30, tzinfo=UTC)]
    assert not comparison.compare(case, wanted, wanted)

    monkeypatch.setattr(comparison, "Cron", Wrong)

    assert call in {
        one.call.partition("(")[0].partition(",")[0]
        for one in comparison.compare(case, wanted, wanted)
    }


@pytest.mark.parametrize(
    ("field", "values", "step"),
    [
        ("H", range(60), None),
        ("H(10-20)", range(10, 21), None),
        ("H/15", range(60), 15),
        ("H(0-29)/10", range(30), 10),
    ],
)
def test_a_hash_falls_into_its_range_and_keeps_its_step(field, values, step):
    starts: set[int] = set()
    for number in range(200):
        minutes = [
            int(one) for one in resolved(f"{field} 3 * * *", str(number)).split()[0].split(",")
        ]
        starts.add(minutes[0])

        assert set(minutes) <= set(values)
        wanted = [minutes[0]] if step is None else list(range(minutes[0], values[-1] + 1, step))
        assert minutes == wanted

    assert len(starts) >= min(len(values), step or len(values)) * 3 // 4
