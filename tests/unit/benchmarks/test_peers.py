import dataclasses
import sys
from pathlib import Path

import pytest

from benchmarks.figures import Cost
from benchmarks.pairs import Pair
from benchmarks.peers import page, side
from benchmarks.peers.__main__ import absence, main
from benchmarks.peers.facts import PROMISES, Facts
from benchmarks.peers.ours import facts as our_facts
from benchmarks.peers.roster import ROSTER, STORES


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


def run(store: str = "postgres") -> page.Run:
    return page.Run(
        store=store,
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


def test_what_was_not_measured_has_a_dash():
    rows = {row[0]: row[1:] for row in page.rows([found("ours", 90)])}

    assert rows["bytes per waiting job"] == ["–"]
    assert rows["jobs due at one instant"] == ["–"]


def test_jobs_due_at_one_instant_are_told_with_their_number():
    one = found("ours", 90)
    one.due = {"jobs": 2_000, "early": 0, "first_ms": 7.4, "p50_ms": 900.0, "last_ms": 1_800.0}

    rows = {row[0]: row[1:] for row in page.rows([one])}

    assert rows["jobs due at one instant"] == ["2,000"]
    assert rows["  first late by, ms"] == ["7"]


def test_the_pairs_must_have_a_median_below_one():
    (must,) = page.musts([run()])

    assert "median of 3 alternating pairs: 1.000 × (from 0.900 to 1.300)" in must.told
    assert not must.kept
    assert str(must).endswith(": MISSED")


def on_redis(ours: int, *theirs: int) -> page.Run:
    return page.Run(
        store="redis",
        found=[found("ours", ours), *(found(f"peer-{us}", us) for us in theirs)],
        pairs=[],
        pair_with="",
        server="Valkey 9.1",
    )


def test_ours_on_redis_must_beat_the_best_peer_there_and_the_best_anywhere():
    there, anywhere = page.musts([on_redis(40, 300, 100)])

    assert "peer-100, the best peer on Redis" in there.told
    assert "100.0 / 40.0 µs = 2.50 ×, at least 2.5" in there.told
    assert there.kept
    assert anywhere.kept


def test_a_peer_on_another_store_counts_among_all():
    elsewhere = page.Run(
        store="postgres",
        found=[found("ours", 30), found("quick", 50)],
        pairs=[],
        pair_with="",
        server="PostgreSQL 18.6",
    )

    there, anywhere = page.musts([elsewhere, on_redis(40, 300)])

    assert there.kept
    assert "quick, the best peer on any store" in anywhere.told
    assert not anywhere.kept


def test_a_peer_that_could_not_be_measured_is_no_best_one():
    alone = on_redis(40)

    assert page.musts([alone]) == []
    lost = page.Found(facts("lost"), failures=["drain: jobs are stuck"])
    both = dataclasses.replace(alone, found=[*alone.found, lost, found("slow", 90)])
    must, _ = page.musts([both])
    assert "slow, the best peer on Redis" in must.told


def test_the_section_stands_in_the_place_of_the_old_one(tmp_path):
    text = tmp_path / "page.md"
    begin, end = page.BEGIN.format("postgres"), page.END.format("postgres")
    text.write_text(f"before\n\n{begin}\nold\n{end}\n\nafter\n", encoding="utf-8")

    page.write(page.section(run(), page.musts([run()])), "postgres", text)

    written = text.read_text(encoding="utf-8")
    assert written.startswith("before\n\n")
    assert written.endswith("\n\nafter\n")
    assert "old" not in written
    assert "| other 1.0 | 5 | " in written
    assert "| other | what other does | " in written
    assert "- CPU per job of draining, ours to other" in written
    page.write(page.section(run(), page.musts([run()])), "postgres", text)
    assert text.read_text(encoding="utf-8") == written


def test_a_page_without_a_place_is_left_alone(tmp_path):
    text = tmp_path / "page.md"
    text.write_text("nothing\n", encoding="utf-8")

    with pytest.raises(ValueError, match="no place for the peers"):
        page.write("more", "redis", text)
    assert text.read_text(encoding="utf-8") == "nothing\n"


@pytest.mark.parametrize("store", STORES)
def test_the_docs_have_a_place_for_each_section(store):
    text = page.PAGE.read_text(encoding="utf-8")

    assert text.index(page.BEGIN.format(store)) < text.index(page.END.format(store))


@pytest.mark.parametrize("store", STORES)
def test_ours_says_all_that_is_asked_of_the_others(store):
    assert tuple(our_facts(store).promises) == PROMISES
    assert all(our_facts(store).promises.values())


def test_every_peer_has_an_adapter_and_a_store():
    folder = Path(side.__file__ or "").parent

    adapters = {file.stem.removeprefix("with_") for file in folder.glob("with_*.py")}

    assert adapters == set(ROSTER)
    assert {entry.store for entry in ROSTER.values()} == set(STORES)


def test_an_unknown_peer_is_named():
    with pytest.raises(SystemExit, match="`other` is unknown; hint: name one of pgqueuer"):
        side.main(["other", "facts"])


def test_without_the_peers_nothing_is_measured(tmp_path, capsys):
    assert main(["--build", str(tmp_path)]) == 2
    assert "make bench-peers" in capsys.readouterr().err


def test_an_unknown_peer_cannot_be_chosen(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "saq,other"])
    assert "unknown: other" in capsys.readouterr().err


def test_a_machine_without_node_says_so(tmp_path, monkeypatch):
    python = tmp_path / "peers" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()

    assert absence("saq", tmp_path) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert absence("bullmq", tmp_path) == "bullmq: there is no Node here"


def test_no_lock_names_a_host_that_packages_come_from():
    lock = Path(side.__file__ or "").parent / "bullmq" / "package-lock.json"

    assert '"resolved"' not in lock.read_text(encoding="utf-8")


def test_our_packages_are_not_needed_by_the_processes_of_a_peer():
    assert "lamplighter" not in {
        name.partition(".")[0]
        for module in ("gauges", "peers.side", "peers.roster", "peers.adapter", "peers.facts")
        for name in _imported(module)
    }


def _imported(module: str) -> set[str]:
    file = Path(sys.modules[f"benchmarks.{module}"].__file__ or "")
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
