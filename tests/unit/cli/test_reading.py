import pytest

from lamplighter import runtime
from lamplighter.cli import reading
from lamplighter.model.errors import InvalidPayload, InvalidTime


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("15m", 900),
        ("15 min", 900),
        ("2h", 7200),
        ("1h30m", 5400),
        ("3D", 3 * 86_400),
        ("1w", 7 * 86_400),
    ],
)
def test_durations_are_read_as_people_write_them(text, seconds):
    assert reading.duration("the delay", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "1h 2", "h", "1e3", "nan", "inf", "--5"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InvalidTime, match="is not a duration"):
        reading.duration("the delay", text)


def test_a_negative_duration_is_called_negative():
    with pytest.raises(InvalidTime, match="`-2h` is negative"):
        reading.duration("the delay", "-2h")


def test_an_instant_needs_its_time_zone():
    assert reading.instant("the time", "2030-01-31T12:00:00Z").timestamp() == 1_896_091_200
    assert reading.instant("the time", "2030-01-31T14:00:00+02:00").timestamp() == 1_896_091_200
    with pytest.raises(InvalidTime, match="has no time zone"):
        reading.instant("the time", "2030-01-31T12:00:00")
    with pytest.raises(InvalidTime, match="is not a time"):
        reading.instant("the time", "tomorrow")


def test_a_moment_is_an_instant_or_a_time_ago():
    before = runtime.now_ms()
    assert before - 7_200_000 <= (reading.moment_ms("--after", "2h") or 0) <= runtime.now_ms()
    assert reading.moment_ms("--after", "2030-01-31T12:00:00Z") == 1_896_091_200_000
    assert reading.moment_ms("--after", None) is None
    with pytest.raises(InvalidTime, match="--after `noon` is not a time") as caught:
        reading.moment_ms("--after", "noon")
    assert "how long ago" in caught.value.hint


def test_arguments_are_read_by_name_or_as_json():
    assert reading.arguments(["order=o-1", "euros=5", "gift=true", "note="], {}) == {
        "order": "o-1",
        "euros": 5,
        "gift": True,
        "note": "",
    }
    assert reading.arguments([' {"order": "o-1"}'], {}) == {"order": "o-1"}
    assert reading.arguments([], {}) == {}
    assert reading.arguments(["a=b=c"], {}) == {"a": "b=c"}


def test_a_value_that_should_be_text_stays_text():
    schema = {
        "properties": {
            "order": {"type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }
    }
    texts = ["order=7", "note=8", "either=9", "other=10"]
    assert reading.arguments(texts, schema) == {
        "order": "7",
        "note": "8",
        "either": 9,
        "other": 10,
    }


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        (['{"order": 1'], "not JSON"),
        (['{"order": NaN}'], "NaN is not a JSON value"),
        (["[1]"], "neither name=value nor a JSON object"),
        (["order"], "neither name=value nor a JSON object"),
        (["=5"], "neither name=value nor a JSON object"),
        (["a=1", "a=2"], "given twice"),
        (["a=1", '{"b": 2}'], "neither name=value nor a JSON object"),
    ],
)
def test_arguments_that_cannot_be_read_are_refused(texts, cause):
    with pytest.raises(InvalidPayload, match=cause):
        reading.arguments(texts, {})


def test_ids_are_made_canonical_and_named_once():
    an_id = "01M7FGQ3150077Z61KMGXG8AQQ"
    assert reading.ids([an_id.lower(), f" {an_id} "]) == [an_id]
