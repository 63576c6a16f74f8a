"""A command that a test runs cleans up when Ctrl-C interrupts the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from project.environment import ROOT

CLEANS_UP = """
import pathlib, sys, time
state, interrupted = map(pathlib.Path, sys.argv[1:])
def wait_until_interrupted():
    while not interrupted.exists():
        time.sleep(0.02)
try:
    state.write_text("started")
    wait_until_interrupted()
except KeyboardInterrupt:
    state.write_text("cleaning up")
    wait_until_interrupted()
    state.write_text("cleaned up")
"""
CALLER = """
import os, sys
from support import interruptible
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


def test_interrupted_command_cleans_up(tmp_path: Path) -> None:
    state, interrupted = tmp_path / "state", tmp_path / "interrupted twice"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("tests", "tools"))}
    words = [sys.executable, "-c", CALLER, CLEANS_UP, str(state), str(interrupted)]
    with subprocess.Popen(words, env=environ, start_new_session=True) as process:
        wait_for(state, "started")
        os.killpg(process.pid, signal.SIGINT)
        wait_for(state, "cleaning up")
        os.killpg(process.pid, signal.SIGINT)
        interrupted.touch()
        assert process.wait(60) == 130
    assert state.read_text() == "cleaned up"
