"""For the tests of programs that use Lamplighter.

``run`` and ``attempt`` run one handler here and now. ``store`` gives an app a store of its own for
the time of a test, whose clock the test moves; jobs run in the process of the test, by the same
rules as in a worker.
"""

from lamplighter.testing.clock import Clock
from lamplighter.testing.errors import NeverIdle, NothingDue, NotSubmitted, StillSubmitted
from lamplighter.testing.inline import attempt, attempt_sync, run, run_sync
from lamplighter.testing.store import Store, store
from lamplighter.testing.submissions import Submission
from lamplighter.testing.summary import Ran, Summary
from lamplighter.testing.sync import SyncStore, store_sync

__all__ = [
    "Clock",
    "NeverIdle",
    "NotSubmitted",
    "NothingDue",
    "Ran",
    "StillSubmitted",
    "Store",
    "Submission",
    "Summary",
    "SyncStore",
    "attempt",
    "attempt_sync",
    "run",
    "run_sync",
    "store",
    "store_sync",
]
