"""`python -m benchmarks.pairs --base DIR [--pairs 7] [--part drain] [--quick]`.

Measures a checkout of an earlier version and this one in turn, each with its own benchmarks, and
compares neighbours: what the machine does meanwhile, it does to both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.figures import paired_ratio

HERE = Path(__file__).resolve().parent.parent
MOST = 1.10
"""Above this ratio the later version counts as slower."""

_WHERE = "import benchmarks, lamplighter; print(lamplighter.__file__); print(benchmarks.__file__)"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two measurements taken next to each other; less is better."""

    base: float
    here: float

    @property
    def ratio(self) -> float:
        return self.here / self.base


def main(arguments: list[str]) -> int:
    """Measure, print, and exit with 1 when this version is slower, with 2 when it cannot tell."""
    given = _parser().parse_args(arguments)
    base = given.base.resolve()
    options = ["--engine", given.engine, "--only", given.part]
    if given.quick:
        options.append("--quick")
    if given.folder is not None:
        options += ["--folder", given.folder]
    try:
        for root in (base, HERE):
            print(f"{root}: {', '.join(map(str, imported(root)))}")
        pairs: list[Pair] = []
        for number in range(given.pairs):
            pairs.append(measure(base, lambda root: _run(root, options, given), number))
            print(f"pair {number + 1}: {_told(pairs[-1])}", flush=True)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    print(verdict(pairs, given.most))
    return int(median_ratio(pairs) > given.most)


def measure(base: Path, run: Callable[[Path], float], number: int) -> Pair:
    """Take one pair; who comes first takes turns."""
    if number % 2:
        here = run(HERE)
        return Pair(run(base), here)
    return Pair(run(base), run(HERE))


def median_ratio(pairs: Sequence[Pair]) -> float:
    """Give the ratio that half of the pairs do not exceed."""
    return paired_ratio([pair.here for pair in pairs], [pair.base for pair in pairs])


def verdict(pairs: Sequence[Pair], most: float) -> str:
    """Say what the pairs come to."""
    ratios = [pair.ratio for pair in pairs]
    middle = median_ratio(pairs)
    base, here = (
        statistics.median(values)
        for values in ([pair.base for pair in pairs], [pair.here for pair in pairs])
    )
    return (
        f"median of {len(pairs)} pairs: {middle:.3f} × (from {min(ratios):.3f} to "
        f"{max(ratios):.3f}; {base:.4g} and {here:.4g}), {'MISSED' if middle > most else 'ok'}: "
        f"at most {most:g}"
    )


def environment(root: Path) -> dict[str, str]:
    """Make a checkout's own files come before those that are installed."""
    paths = [str(root / "src"), str(root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def imported(root: Path) -> list[Path]:
    """Where the package and its benchmarks come from in a checkout; elsewhere is an error."""
    shown = subprocess.run(
        [sys.executable, "-c", _WHERE],
        cwd=root if root.is_dir() else None,
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    files = [Path(line).resolve() for line in shown.stdout.splitlines()]
    wanted = (root / "src", root / "benchmarks")
    if len(files) != len(wanted) or not all(map(Path.is_relative_to, files, wanted)):
        told = shown.stderr.strip() or f"found {', '.join(map(str, files))}"
        raise BenchmarkError(f"{root} is no checkout that can be measured: {told}")
    return files


def _run(root: Path, options: list[str], given: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory(prefix="lamplighter-pair-") as folder:
        file = Path(folder) / "found.json"
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks", *options, "--json", str(file)],
            cwd=root,
            env=environment(root),
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode or not file.exists():
            told = ended.stderr.strip() or f"it ended with status {ended.returncode}"
            raise BenchmarkError(f"no measurement in {root}: {told}")
        found = json.loads(file.read_text(encoding="utf-8"))[given.part]
    value = found.get(given.figure)
    if not isinstance(value, (int, float)):
        raise BenchmarkError(f"`{given.part}` has no figure `{given.figure}`: {', '.join(found)}")
    return float(value)


def _told(pair: Pair) -> str:
    return f"{pair.base:10.4g}{pair.here:10.4g}{pair.ratio:8.3f} ×"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, metavar="DIR", help="earlier checkout")
    parser.add_argument("--pairs", type=_count, default=7, metavar="N")
    parser.add_argument("--part", default="drain", help="what is measured; both must have it")
    parser.add_argument("--figure", default="cpu_us", help="number of the part; less is better")
    parser.add_argument("--most", type=float, default=MOST, help="highest ratio that is not slower")
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--engine", default="sqlite")
    parser.add_argument("--folder", metavar="DIR", help="where stores are made; a real disk")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number of pairs: {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
