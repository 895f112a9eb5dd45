from pathlib import Path

import pytest

from tools import seams

FORBIDDEN = {
    "import time": "time",
    "import time as clock": "time",
    "import random": "random",
    "import uuid": "uuid",
    "import secrets": "secrets",
    "import os, time": "time",
    "from time import monotonic": "time",
    "from random import Random": "random",
    "from uuid import uuid4 as new_id": "uuid",
    "from secrets import token_bytes": "secrets",
    "def late():\n    import time": "time",
    "__import__('time')": "time",
    "import importlib\nimportlib.import_module('random')": "random",
    "from importlib import import_module\nimport_module('uuid')": "uuid",
    "import datetime\ndatetime.datetime.now()": "datetime.datetime.now",
    "import datetime as dt\ndt.datetime.now(dt.UTC)": "datetime.datetime.now",
    "import datetime as dt\ndt.date.today()": "datetime.date.today",
    "from datetime import datetime\ndatetime.utcnow()": "datetime.datetime.utcnow",
    "from datetime import datetime as D\nD.today()": "datetime.datetime.today",
    "from datetime import date\ndate.today()": "datetime.date.today",
    "from datetime import datetime\nmake = datetime.now": "datetime.datetime.now",
    "import asyncio\nasyncio.sleep(1)": "asyncio.sleep",
    "import asyncio as aio\nnap = aio.sleep": "asyncio.sleep",
    "import asyncio.subprocess\nasyncio.sleep(1)": "asyncio.sleep",
    "from asyncio import sleep": "asyncio.sleep",
    "from asyncio import sleep as nap": "asyncio.sleep",
    "from asyncio import tasks\ntasks.sleep(1)": "asyncio.tasks.sleep",
    "import os\nos.urandom(8)": "os.urandom",
    "import os\nos.getrandom(8)": "os.getrandom",
    "from os import urandom": "os.urandom",
    "def f(loop):\n    return loop.time()": "time() of an event loop",
    "def f(self):\n    return self._loop.time()": "time() of an event loop",
    "import asyncio\nasyncio.get_event_loop().time()": "time() of an event loop",
    "import asyncio\nasyncio.get_running_loop().time()": "time() of an event loop",
    "import asyncio\nx = asyncio.get_running_loop()\nx.time()": "time() of an event loop",
    "import asyncio\nx: object = asyncio.new_event_loop()\nx.time()": "time() of an event loop",
    "from asyncio import get_running_loop as g\ng().time()\nmy_loop.time()": (
        "time() of an event loop"
    ),
}

CLEAN = [
    "from lamplighter.runtime import Runtime",
    "from lamplighter import runtime\nruntime.time()",
    "from .time import Instant",
    "from . import random",
    "import asyncio\nasyncio.timeout(1)\nasyncio.Event()",
    "from datetime import UTC, datetime\ndatetime(2030, 1, 1, tzinfo=UTC)",
    "from datetime import datetime\ndatetime.fromtimestamp(0)",
    "import datetime as dt\ndt.time(12, 30)",
    "import os\nos.getpid()",
    "def f(clock):\n    return clock.time()",
    "def f(row, time, random):\n    return row.time, time.time(), random.random()",
    "'import time'  # import time",
    "class Clock:\n    def now(self): ...\n\nClock().now()",
    "import asyncio\nloop = asyncio.get_running_loop()\nloop.create_task(None)",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "runtime.py").write_text("import random\nimport time\n")
    return tmp_path


@pytest.mark.parametrize("source", FORBIDDEN)
def test_going_past_the_runtime_is_found(package, source):
    (package / "module.py").write_text(source)

    found = seams.findings(package)

    assert [finding.what for finding in found] == [FORBIDDEN[source]]


@pytest.mark.parametrize("source", CLEAN)
def test_clean_code_is_accepted(package, source):
    (package / "module.py").write_text(source)

    assert seams.findings(package) == []


def test_only_the_runtime_of_the_package_itself_is_exempt(package):
    inner = package / "port" / "conformance"
    inner.mkdir(parents=True)
    (inner / "runtime.py").write_text("import time")

    assert [finding.path for finding in seams.findings(package)] == [inner / "runtime.py"]


def test_a_finding_names_file_line_and_remedy(package, capsys):
    module = package / "module.py"
    module.write_text("import os\n\nkey = os.urandom(8)\n")

    code = seams.main([str(package)])

    assert code == 1
    assert capsys.readouterr().out == f"{module}:3: os.urandom: use lamplighter.runtime\n"


def test_a_clean_package_passes(package, capsys):
    assert seams.main([str(package)]) == 0
    assert capsys.readouterr().out == ""


def test_a_missing_folder_is_an_error_and_not_a_pass(tmp_path, capsys):
    assert seams.main([str(tmp_path / "nowhere")]) == 2
    assert "no folder" in capsys.readouterr().out


def test_syntax_errors_are_not_swallowed(package):
    (package / "module.py").write_text("def (")

    with pytest.raises(SyntaxError):
        seams.findings(package)
