"""Several processes that serve one store on a server."""

import asyncio
import os
import signal

from lamplighter.connect import connect
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


def test_a_store_that_is_lost_is_told_and_nothing_is_acknowledged(server, tmp_path):
    settings = {"LAMPLIGHTER_URL": server.url(), "LAMPLIGHTER_HTTP_UNKNOWN_TYPES": "1"}
    with serving(tmp_path, **settings) as (_, address), server.client() as client:
        body = {"type": "greet", "arguments": {}}
        assert ask(address, "POST", "/v1/jobs", body)[0] == 201
        client.flushall()
        status, problem = ask(address, "POST", "/v1/jobs", body)
        assert (status, problem["code"]) == (503, "store-lost")
        assert client.dbsize() == 0
        asyncio.run(connect(server.url()).migrate())
        assert ask(address, "POST", "/v1/jobs", body)[0] == 201


def test_a_store_that_is_away_is_told_before_the_time_of_the_request_is_over(server, tmp_path):
    """Whoever asks learns what is wrong, not only that it took long."""
    settings = {"LAMPLIGHTER_URL": server.url(), "LAMPLIGHTER_HTTP_TIMEOUT": "4"}
    with serving(tmp_path, **settings) as (_, address):
        assert ask(address, "GET", "/v1/jobs")[0] == 200
        server.kill9()
        status, problem = ask(address, "GET", "/v1/jobs")
    assert (status, problem["code"]) == (503, "store-unreachable")
