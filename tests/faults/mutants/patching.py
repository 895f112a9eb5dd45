"""Applies unified diffs exactly: no fuzz, but line numbers may have moved."""

from __future__ import annotations

from pathlib import Path


class DoesNotApply(Exception):
    """The sources have changed; the patch has to be made anew."""


def apply(patch: str, root: Path) -> None:
    """Change the files below ``root`` that a patch names."""
    target: Path | None = None
    hunks: list[tuple[Path, list[str]]] = []
    for line in patch.splitlines():
        if line.startswith("+++ b/"):
            target = root / line.removeprefix("+++ b/")
        elif line.startswith("@@") and target is not None:
            hunks.append((target, []))
        elif hunks and line[:1] in {" ", "-", "+"} and not line.startswith("--- a/"):
            hunks[-1][1].append(line)
    if not hunks:
        raise DoesNotApply("the patch has no hunk")
    for path, lines in hunks:
        _apply_hunk(path, lines)


def _apply_hunk(path: Path, lines: list[str]) -> None:
    before = "\n".join(line[1:] for line in lines if line[0] != "+") + "\n"
    after = "\n".join(line[1:] for line in lines if line[0] != "-") + "\n"
    text = path.read_text(encoding="utf-8")
    if text.count(before) != 1:
        raise DoesNotApply(f"{path.name} has {text.count(before)} places like\n\n{before}")
    path.write_text(text.replace(before, after), encoding="utf-8")
