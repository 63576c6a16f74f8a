"""Commands that a test runs and Ctrl-C interrupts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from project.environment import ROOT
from support import interruptible

CLEANS_UP = """
import pathlib, sys, time
try:
    pathlib.Path(sys.argv[1]).write_text("started")
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path(sys.argv[1]).write_text("cleaning up")
    time.sleep(1)
    pathlib.Path(sys.argv[1]).write_text("cleaned up")
"""
CALLER = """
import os, signal, sys
from support import interruptible
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    interruptible.run([sys.executable, "-c", *sys.argv[1:]], os.environ)
except KeyboardInterrupt:
    sys.exit(130)
"""


def wait_for(state: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while not (state.exists() and state.read_text() == text):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("whole_group", [True, False], ids=["Ctrl-C in a terminal", "SIGINT to the tests only"])
def test_interrupted_command_cleans_up(tmp_path: Path, *, whole_group: bool) -> None:
    state = tmp_path / "state"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("tests", "tools"))}
    words = [sys.executable, "-c", CALLER, CLEANS_UP, str(state)]
    with subprocess.Popen(words, env=environ, start_new_session=True) as process:
        interrupt = os.killpg if whole_group else os.kill
        wait_for(state, "started")
        interrupt(process.pid, signal.SIGINT)
        wait_for(state, "cleaning up")
        interrupt(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    assert state.read_text() == "cleaned up"


def test_exit_code_and_output_are_returned() -> None:
    program = "import sys; print('out', flush=True); print(sys.argv[1], file=sys.stderr); sys.exit(3)"
    assert interruptible.run([sys.executable, "-c", program, "problem"], os.environ) == (3, "out\nproblem\n")
