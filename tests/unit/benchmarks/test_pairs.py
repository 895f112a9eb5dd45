import textwrap
from pathlib import Path

import pytest

from benchmarks import pairs
from benchmarks.errors import BenchmarkError
from benchmarks.pairs import HERE, Pair, imported, main, measure, median_ratio, verdict

BENCHMARKS = """
import json, sys
import lamplighter
json_file = sys.argv[sys.argv.index("--json") + 1]
part = sys.argv[sys.argv.index("--only") + 1]
with open(json_file, "w") as file:
    json.dump({part: {"cpu_us": lamplighter.COST, "jobs_per_s": "many"}}, file)
"""


def checkout(folder, cost):
    """A checkout whose benchmark says what its package says."""
    files = {
        "src/lamplighter/__init__.py": f"COST = {cost}\n",
        "benchmarks/__init__.py": "",
        "benchmarks/__main__.py": BENCHMARKS,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    made = checkout(tmp_path / "here", 100.0)
    monkeypatch.setattr(pairs, "HERE", made)
    return made


def test_a_checkout_is_imported_from_its_own_folder_whatever_is_installed(tmp_path):
    base = checkout(tmp_path, 1.0)

    assert imported(base) == [
        base / "src/lamplighter/__init__.py",
        base / "benchmarks/__init__.py",
    ]
    assert imported(HERE)[0] == HERE / "src/lamplighter/__init__.py"


def test_a_folder_without_the_package_is_no_checkout(tmp_path, capsys):
    with pytest.raises(BenchmarkError, match="is no checkout"):
        imported(tmp_path)
    assert main(["--base", str(tmp_path / "missing")]) == 2
    assert "missing is no checkout" in capsys.readouterr().err


def test_who_comes_first_takes_turns():
    seen = []

    def run(root):
        seen.append(root)
        return 1.0 if root == HERE else 2.0

    base = Path("base")
    found = [measure(base, run, number) for number in range(2)]

    assert seen == [base, HERE, HERE, base]
    assert found == [Pair(2.0, 1.0)] * 2


def test_one_slow_pair_does_not_make_a_version_slow():
    found = [Pair(100, 101), Pair(100, 300), Pair(200, 204)]

    assert median_ratio(found) == pytest.approx(1.02)
    assert "1.020 × (from 1.010 to 3.000" in verdict(found, 1.1)
    assert "ok" in verdict(found, 1.1)
    assert "MISSED" in verdict(found, 1.01)


@pytest.mark.parametrize(("cost", "code"), [(95.0, 0), (80.0, 1)])
def test_a_version_that_is_slower_than_the_earlier_one_is_told_by_the_exit_code(
    tmp_path, here, capsys, cost, code
):
    base = checkout(tmp_path / "base", cost)

    assert main(["--base", str(base), "--pairs", "2"]) == code

    told = capsys.readouterr().out
    assert str(here / "src/lamplighter/__init__.py") in told
    assert str(base / "src/lamplighter/__init__.py") in told
    assert "pair 2:" in told
    assert f"{100 / cost:.3f} ×" in told


@pytest.mark.usefixtures("here")
def test_a_ratio_may_be_allowed_to_be_higher(tmp_path):
    base = checkout(tmp_path / "base", 80.0)

    assert main(["--base", str(base), "--pairs", "1", "--most", "1.3"]) == 0


@pytest.mark.usefixtures("here")
def test_a_figure_that_is_no_number_is_an_error(tmp_path, capsys):
    base = checkout(tmp_path / "base", 80.0)

    assert main(["--base", str(base), "--pairs", "1", "--figure", "jobs_per_s"]) == 2
    assert "no figure `jobs_per_s`" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_run_that_fails_is_an_error(tmp_path, capsys):
    base = checkout(tmp_path / "base", 80.0)
    (base / "benchmarks/__main__.py").write_text("raise SystemExit('no disk')")

    assert main(["--base", str(base), "--pairs", "1"]) == 2
    assert "no disk" in capsys.readouterr().err


def test_there_is_at_least_one_pair(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--base", str(tmp_path), "--pairs", "0"])
    assert "not a number of pairs" in capsys.readouterr().err
