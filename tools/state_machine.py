"""Write `docs/internals/state-machine.md` from the transition table of the model.

Usage: python tools/state_machine.py           write the page
       python tools/state_machine.py --check   fail if the page is not what would be written
"""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import TRANSITIONS, Transition

PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "state-machine.md"

HEAD = """\
<!-- Written by tools/state_machine.py from lamplighter.model.lifecycle; `make fix` renews it. -->

# The states of a job

Every change of state is one atomic write of the store, and it is one of the moves below. The
table in `src/lamplighter/model/lifecycle.py` is the source of this page.
"""


def render(transitions: Sequence[Transition]) -> str:
    """The whole page."""
    return f"{HEAD}\n{diagram(transitions)}\n{table(transitions)}"


def diagram(transitions: Sequence[Transition]) -> str:
    """The moves as a picture: one arrow for each pair of states, however many events cause it."""
    arrows: dict[tuple[JobState | None, JobState | None], dict[str, None]] = {}
    for move in transitions:
        arrows.setdefault((move.source, move.target), {})[move.event] = None
    lines = [
        f"    {_node(source)} --> {_node(target)} : {', '.join(events)}"
        for (source, target), events in arrows.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```", ""])


def table(transitions: Sequence[Transition]) -> str:
    """The moves one by one, with their meaning."""
    rows = [
        f"| {_cell(move.source)} | `{move.event}` | {_cell(move.target)} | {move.meaning} |"
        for move in transitions
    ]
    return "\n".join(["| from | event | to | meaning |", "|---|---|---|---|", *rows, ""])


def difference(current: str, wanted: str) -> str:
    """What would change in the page."""
    lines = difflib.unified_diff(
        current.splitlines(), wanted.splitlines(), "in the repository", "generated", lineterm=""
    )
    return "\n".join(lines)


def _node(state: JobState | None) -> str:
    return "[*]" if state is None else state.value


def _cell(state: JobState | None) -> str:
    return "–" if state is None else state.value


def main(arguments: list[str], page: Path = PAGE) -> int:
    """Write or check the page; the exit code says whether it is up to date."""
    wanted = render(TRANSITIONS)
    current = page.read_text(encoding="utf-8") if page.exists() else ""
    if "--check" not in arguments:
        if current != wanted:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(wanted, encoding="utf-8")
        return 0
    if current == wanted:
        return 0
    print(difference(current, wanted))
    print(f"\nerror: {page.name} does not match the transition table\n\nhint: run `make fix`")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
