"""Several processes that serve one store on a server."""

import os
import signal

from tests.unit.server.test_processes import children, listeners, until
from tests.unit.server.test_serve import DEADLINE, ask, serving


def test_several_processes_share_the_store(url, tmp_path):
    settings = {"LAMPLIGHTER_URL": url, "LAMPLIGHTER_HTTP_UNKNOWN_TYPES": "1"}
    with serving(tmp_path, "--processes", "2", **settings) as (process, address):
        made = []
        for number in range(8):
            body = {"type": "greet", "arguments": {"n": number}, "delay": 3600}
            status, answer = ask(address, "POST", "/v1/jobs", body)
            assert status == 201
            made.append(answer["id"])
        os.kill(min(children(process.pid)), signal.SIGKILL)
        for left in (1, 2):  # its socket goes, then that of another one comes
            until(lambda left=left: listeners(address.port) == left)
        for job_id in made:
            status, job = ask(address, "GET", f"/v1/jobs/{job_id}")
            assert (status, job["status"]) == (200, "scheduled")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
