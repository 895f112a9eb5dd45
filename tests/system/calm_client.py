"""A client that asks for little, each time on a new connection, until its input ends.

`python -m tests.system.calm_client PORT` prints, as JSON, how long each answer took and what was
answered otherwise than it should be.
"""

import http.client
import json
import select
import sys
import time

PAUSE = 0.02
PATIENCE = 30.0
JOB = json.dumps({"type": "calm", "arguments": {}})


def main(port: int) -> None:
    took: list[float] = []
    wrong: list[str] = []
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        began = time.perf_counter()
        try:
            status = ask(port, submit=len(took) % 2 == 0)
        except OSError as error:
            status = repr(error)
        took.append(time.perf_counter() - began)
        if status not in {200, 201}:
            wrong.append(str(status))
    print(json.dumps({"took": took, "wrong": wrong}))


def ask(port: int, *, submit: bool) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        if submit:
            line.request("POST", "/v1/jobs", JOB, {"Content-Type": "application/json"})
        else:
            line.request("GET", "/v1/jobs?limit=1")
        answer = line.getresponse()
        answer.read()
        return answer.status
    finally:
        line.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
