"""A run that is stopped leaves no processes."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from faults.process import ROOT

SUPERVISE = """
import asyncio, sys
from pathlib import Path
from faults.process import Operator, supervised

async def main():
    operator = Operator(("--bind", "127.0.0.1", "0"), {}, Path(sys.argv[1]), Path(sys.argv[2]), "http.server")
    async with supervised(operator):
        operator.start()
        while not operator.pid:
            await asyncio.sleep(0.01)
        print(operator.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
"""Starts a process as the cases do, and prints its id."""
TIMEOUT = 60.0
"""Seconds, on a very busy machine."""


@contextmanager
def _python(script: str, *arguments: str) -> Generator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("tests", "tools"))}
    command = (sys.executable, "-c", script, *arguments)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_processes_of_a_case_die_with_the_run(tmp_path: Path) -> None:
    with _python(SUPERVISE, str(tmp_path), str(tmp_path / "log")) as process:
        pid = int(_read_line(process))
        assert _runs(pid)
        process.kill()
        deadline = time.monotonic() + TIMEOUT
        while _runs(pid):
            assert time.monotonic() < deadline, f"process {pid} still runs"
            time.sleep(0.05)
