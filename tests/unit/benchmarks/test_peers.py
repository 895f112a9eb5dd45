import sys
from pathlib import Path

import pytest

from benchmarks.figures import Cost
from benchmarks.pairs import Pair
from benchmarks.peers import page, side
from benchmarks.peers.__main__ import main
from benchmarks.peers.facts import PROMISES, Facts
from benchmarks.peers.ours import FACTS


def facts(name: str) -> Facts:
    return Facts(
        name=name,
        version="1.0",
        settings="defaults",
        promises=dict.fromkeys(PROMISES, f"what {name} does"),
        waiting="SELECT 0",
    )


def found(name: str, *cpu_us: int) -> page.Found:
    costs = [Cost(10, 2.0, {"workers": us * 9_000, "store": us * 1_000}) for us in cpu_us]
    return page.Found(facts(name), bulk=costs[:1], drains=costs, latency=[1.0, 2.0, 30.0])


def run() -> page.Run:
    return page.Run(
        found=[found("ours", 90, 100, 130), found("other", 100, 100, 100)],
        pairs=[Pair(base=100, here=90), Pair(base=100, here=100), Pair(base=100, here=130)],
        pair_with="other",
        server="PostgreSQL 18.6",
    )


def test_each_queue_has_a_column_with_medians_and_their_range():
    rows = {row[0]: row[1:] for row in page.rows(run().found)}

    assert rows[""] == ["ours 1.0", "other 1.0"]
    assert rows["drain, 2 processes, CPU µs per job"] == [
        "100.0 (90.0–130.0)",
        "100.0 (100.0–100.0)",
    ]
    assert rows["drain, 2 processes, jobs/s"] == ["5", "5"]
    assert rows["submit one by one, jobs/s"] == ["–", "–"]
    assert rows["submit to start, idle, p99, ms"] == ["30.00", "30.00"]


def test_the_verdict_is_the_median_of_the_pairs():
    assert "median of 3 alternating pairs: 1.000 × (from 0.900 to 1.300), MISSED" in page.verdict(
        run()
    )


def test_the_section_stands_in_the_place_of_the_old_one(tmp_path):
    text = tmp_path / "page.md"
    text.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n", encoding="utf-8")

    page.write(page.section(run()), text)

    written = text.read_text(encoding="utf-8")
    assert written.startswith("before\n\n")
    assert written.endswith("\n\nafter\n")
    assert "old" not in written
    assert "| drain, 2 processes, jobs/s | 5 | 5 |" in written
    assert "| late finish | what ours does | what other does |" in written
    page.write(page.section(run()), text)
    assert text.read_text(encoding="utf-8") == written


def test_a_page_without_a_place_is_left_alone(tmp_path):
    text = tmp_path / "page.md"
    text.write_text("nothing\n", encoding="utf-8")

    with pytest.raises(ValueError, match="no place for the peers"):
        page.write("more", text)
    assert text.read_text(encoding="utf-8") == "nothing\n"


def test_the_docs_have_a_place_for_the_section():
    text = page.PAGE.read_text(encoding="utf-8")

    assert text.index(page.BEGIN) < text.index(page.END)


def test_ours_says_all_that_is_asked_of_the_others():
    assert tuple(FACTS.promises) == PROMISES


def test_an_unknown_peer_is_named():
    with pytest.raises(SystemExit, match="`other` is unknown; hint: name one of pgqueuer"):
        side.main(["other", "facts"])


def test_without_the_peers_nothing_is_measured(tmp_path, capsys):
    assert main(["--python", str(tmp_path / "python")]) == 2
    assert "make bench-peers" in capsys.readouterr().err


def test_our_packages_are_not_needed_by_the_processes_of_a_peer():
    assert "lamplighter" not in {
        name.partition(".")[0] for module in ("gauges", "peers.side") for name in _imported(module)
    }


def _imported(module: str) -> set[str]:
    file = Path(sys.modules[f"benchmarks.{module}"].__file__ or "")
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
