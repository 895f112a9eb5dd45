"""A program that cannot be imported within any time, and says that it has begun."""

import os
import time
from pathlib import Path

Path(os.environ["RUN_LOG"]).touch()
time.sleep(3600)
