"""What may be said about where a handler runs."""

from datetime import timedelta

import pytest

from lamplighter import App, Limits
from lamplighter.model.errors import InvalidOption, InvalidTime
from lamplighter.model.isolation import Isolation


@pytest.fixture
def app():
    return App("sqlite:///unused.db")


def declare(app: App, **options):
    @app.job(name="work", **options)
    def work() -> None: ...

    return app.registry.get("work")


def test_handlers_share_their_process_unless_they_say_otherwise(app):
    assert declare(app).isolation is Isolation.SHARED


def test_an_isolated_type_says_what_its_process_is_like(app, tmp_path):
    known = declare(
        app,
        isolation="process",
        limits=Limits(memory_mb=512, cpu_seconds=60),
        env={"B": "2", "A": "1"},
        cwd=tmp_path,
        stalled_after=30,
    )

    assert known.isolation is Isolation.PROCESS
    assert known.surroundings.limits.given() == {"memory_mb": 512, "cpu_seconds": 60}
    assert known.surroundings.env == (("A", "1"), ("B", "2"))
    assert known.surroundings.cwd == str(tmp_path)
    assert known.stalled_after == 30.0
    assert known.info().options["isolation"] == "process"
    assert known.info().options["memory_mb"] == 512


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"isolation": "thread"}, ["`thread`", "shared, process"]),
        ({"isolation": 3}, ["`3`", "shared, process"]),
        ({"limits": Limits(memory_mb=512)}, ["limits", 'isolation="process"']),
        ({"env": {"A": "1"}}, ["env", 'isolation="process"']),
        ({"cwd": "/"}, ["cwd", 'isolation="process"']),
        ({"isolation": "process", "limits": {"memory_mb": 1}}, ["memory_mb", "Limits("]),
        ({"isolation": "process", "env": {"A": 1}}, ["env", "text"]),
        ({"isolation": "process", "env": "A=1"}, ["env", "text"]),
        ({"isolation": "process", "env": {"A": "\0"}}, ["env", "text"]),
        ({"isolation": "process", "env": {"A=B": "x"}}, ["`A=B`", "name"]),
        ({"isolation": "process", "env": {"": "x"}}, ["``", "name"]),
        ({"isolation": "process", "env": {"A": "\ud800"}}, ["`A`", "text"]),
        ({"isolation": "process", "cwd": 7}, ["cwd", "`7`"]),
        ({"isolation": "process", "cwd": ""}, ["cwd", "folder"]),
        ({"secrets": "card"}, ["`card`", "secrets=["]),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(app, options, names):
    with pytest.raises(InvalidOption) as caught:
        declare(app, **options)

    for name in names:
        assert name in str(caught.value)
    assert "work" not in app.registry


def test_a_type_says_how_long_after_its_timeout_its_process_ends(app):
    known = declare(app, hard_after=timedelta(minutes=2))

    assert known.hard_after == 120.0
    assert known.info().options["hard_after"] == 120.0


@pytest.mark.parametrize("value", [0, 0.05, -1, 86_401, "soon", float("nan"), True])
def test_a_hard_end_needs_a_duration_that_the_setting_could_have(app, value):
    with pytest.raises(InvalidTime, match="hard_after"):
        declare(app, hard_after=value)


@pytest.mark.parametrize("value", [0, -1, "soon", float("nan"), True])
def test_a_stall_needs_a_duration(app, value):
    with pytest.raises(InvalidTime, match="stalled_after"):
        declare(app, stalled_after=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory_mb", 1),
        ("memory_mb", 512.0),
        ("cpu_seconds", 0),
        ("open_files", True),
        ("processes", "many"),
        ("processes", -1),
    ],
)
def test_a_limit_out_of_its_bounds_is_refused(name, value):
    with pytest.raises(InvalidOption, match=f"{name} is `{value}`"):
        Limits(**{name: value})
