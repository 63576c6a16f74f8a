"""A test that stands still ends, and is named with the programs that it waits for."""

import os
import sys
from pathlib import Path
from typing import Final

from support import programs

STANDS_STILL: Final = """
import subprocess

def test_waits():
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            process.wait()
        finally:
            process.kill()

def test_next():
    pass
"""
CATCHES: Final = """
import asyncio
import time

async def catches():
    while True:
        try:
            time.sleep(0.1)
        except BaseException:
            return

async def waits():
    await asyncio.gather(asyncio.create_task(catches()), asyncio.Event().wait())

def test_waits():
    asyncio.run(waits())

def test_next():
    pass
"""
VIRTUAL: Final = """
import time
from unittest import mock

def test_hours():
    with mock.patch.object(time, "monotonic", lambda: 1e9):
        time.sleep(1.5)
"""


def outcome(tmp_path: Path, text: str) -> tuple[int, str]:
    """Exit code and output of these tests, which may take 2 s each, in a process of pytest-xdist."""
    (tmp_path / "test_it.py").write_text(text)
    words = [sys.executable, "-m", "pytest", "-p", "support.overdue", "--numprocesses=1", "--reruns=1", "--quiet"]
    words += ["--rerun-except=OverdueError", f"--rootdir={tmp_path}", "-c", os.devnull, str(tmp_path)]
    environment = {**os.environ, "TEST_LIMIT": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = programs.run(words, env=environment, cwd=tmp_path)
    return done.returncode, done.stdout + done.stderr


def test_test_that_waits_for_a_program_fails_with_its_name(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, STANDS_STILL)
    assert code == 1
    assert "::test_waits exceeds its limit of 2 s; its programs: sleep 1000" in output
    assert "1 failed, 1 passed in" in output, "it does not run again"


def test_error_that_a_task_catches_is_raised_again(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, CATCHES)
    assert (code, "1 failed, 1 passed in" in output) == (1, True), output


def test_time_of_a_simulation_does_not_count(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, VIRTUAL)
    assert (code, "1 passed in" in output) == (0, True), output
