"""A program whose slot processes start as the file `RUN_LOG.how` says; children just start."""

import os
import time
from pathlib import Path

from lamplighter import App, Context
from lamplighter.worker import descendants
from tests.system.program import note, released

app = App()


def start() -> None:
    with Path(os.environ["RUN_LOG"]).open("a") as log:
        log.write(f"- starting {os.getpid()} 0\n")
    how = Path(os.environ["RUN_LOG"] + ".how").read_text()
    while how == "slowly" and not released():
        time.sleep(0.02)
    if how == "fails":
        raise RuntimeError("the licence has run out")
    if how == "dies":
        os._exit(7)


if descendants.SLOT in os.environ:
    start()


@app.job(delivery="at_most_once", isolation="process")
def charge(ctx: Context) -> None:
    note(ctx, "run")
