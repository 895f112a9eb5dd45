"""How handlers say what they do: each run when it starts and ends, and one effect."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lamplighter import Context
from tests.faults.history import Journal
from tests.faults.ledger import Ledger
from tests.faults.processes import identify
from tests.faults.rules import FOLDER


class _Books:
    """The files of the run; opened by the first handler of a process."""

    journal: Journal | None = None
    ledger: Ledger | None = None
    born: int = 0


def _books() -> tuple[Journal, Ledger]:
    if _Books.journal is None or _Books.ledger is None:
        folder = Path(os.environ[FOLDER])
        me = identify(os.getpid())
        _Books.born = me.born if me else 0
        _Books.ledger = Ledger(folder / "effects")
        _Books.journal = Journal(folder / "history.jsonl")
    return _Books.journal, _Books.ledger


@contextmanager
def recorded(ctx: Context) -> Iterator[dict[str, Any]]:
    """Note a run from its first to its last instruction; its effect comes last.

    Gives the fence, which every result and error of the run should name.
    """
    journal, ledger = _books()
    author = {"lease": ctx.lease, "nonce": ctx._fence.nonce, "pid": os.getpid()}
    mine = {"job": ctx.job_id, "lease": ctx.lease, "pid": os.getpid()}
    about = {"type": ctx.type, "attempt": ctx.attempt, "due": ctx._job.due_at_ms}
    journal.write("run_started", born=_Books.born, **about, **mine)
    how = "stopped"
    try:
        yield author
        ledger.add(ctx.job_id)
        how = "returned"
    except Exception:
        how = "raised"
        raise
    finally:
        journal.write("run_ended", how=how, **mine)
