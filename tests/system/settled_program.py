"""A program that sets its process up as it likes it, before any job."""

import gc
import os
import socket
import sys

from lamplighter import App

app = App()
sys.setswitchinterval(0.01)
socket.setdefaulttimeout(30.0)
gc.freeze()
gc.disable()


@app.job
async def pid() -> int:
    return os.getpid()
