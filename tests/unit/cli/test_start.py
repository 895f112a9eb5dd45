"""Ctrl-C before a command has begun: while it is being loaded."""

import os
import signal
import subprocess
import sys

import pytest

INTERRUPTER = """
import os, signal, sys

def interrupt(event, arguments):
    # The module may be looked for again by others: once is enough.
    if event == "import" and arguments[0] == {module!r} and "interrupted" not in os.environ:
        os.environ["interrupted"] = "1"
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
"""
MODULE = ("-m", "lamplighter")
SCRIPT = ("-c", "import sys\nfrom lamplighter.cli.start import start\nsys.exit(start())")


def ended(folder, module: str, *command: str, ignored: bool = False) -> tuple[int, str, str]:
    """Run the command line with a Ctrl-C at the moment at which it loads a module."""
    (folder / "sitecustomize.py").write_text(INTERRUPTER.format(module=module))
    # Whoever runs the tests may ignore it, as shells do for what runs in the background.
    listens = signal.SIG_IGN if ignored else signal.SIG_DFL
    process = subprocess.run(
        [sys.executable, *command, "cron", "explain", "@daily", "--count", "1"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, listens),
    )
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize("command", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize(
    "module", ["click", "asyncio", "lamplighter.app", "lamplighter.cli.worker"]
)
def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_word(tmp_path, command, module):
    assert ended(tmp_path, module, *command) == (130, "", "")


def test_ctrl_c_while_it_loads_more_is_no_failure_of_the_program(tmp_path):
    code, said, complained = ended(tmp_path, "rich.table", *MODULE)
    assert (code, complained.strip()) == (130, "")
    assert said.startswith("At 00:00 every day")


def test_a_command_that_is_not_interrupted_does_its_work(tmp_path):
    code, said, complained = ended(tmp_path, "nobody.imports.this", *MODULE)
    assert (code, complained) == (0, "")
    assert said.startswith("At 00:00 every day")


def test_ctrl_c_stays_ignored_where_it_was(tmp_path):
    code, said, complained = ended(tmp_path, "lamplighter.app", *MODULE, ignored=True)
    assert (code, complained) == (0, "")
    assert said.startswith("At 00:00 every day")
