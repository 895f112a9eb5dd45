"""What a worker under measurement imports: `benchmarks.app:app`."""

import os

from benchmarks.jobs import EXTRA, declare
from lamplighter import App

app = declare(App(os.environ["LAMPLIGHTER_URL"]), extra=os.environ.get(EXTRA, "").split()).app
