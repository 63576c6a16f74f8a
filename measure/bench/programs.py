"""The measured processes: started as in the image, and measured in /proc."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

from support.cpu import cpu_time
from support.ports import free_port

LAUNCH = "import sys; sys.modules.update(kubernetes=None, pykube=None); from {} import main; main()"
"""Calls a program's `main`. Development packages that kopf would import are hidden, because the image has none."""


class Program:
    """A running process and its log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, metrics_port: int) -> None:
        self.process = process
        self.log = log
        self._metrics = f"http://127.0.0.1:{metrics_port}/metrics"

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def cpu(self) -> float:
        """CPU time used so far, in seconds, user and system."""
        return cpu_time(self.pid)

    def rss(self) -> float:
        """Resident memory, in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def metric(self, name: str) -> float:
        """The sum of a metric's series; 0 if there are none."""
        self.check()
        try:
            with urlopen(self._metrics, timeout=5) as response:  # noqa: S310 - http, on loopback
                text = response.read().decode()
        except (URLError, OSError):
            return 0.0
        series = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
        return sum(float(line.rpartition(" ")[2]) for line in series)

    def check(self) -> None:
        """Raise RuntimeError, with the end of the log, if the process has exited."""
        if self.process.poll() is not None:
            end = "\n".join(self.log.read_text().splitlines()[-5:])
            raise RuntimeError(f"{self.log.stem} exited with code {self.process.returncode}:\n{end}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait for the exit."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        self.process.wait(20)


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    metrics_port: int = 0,
    environment: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    sources: Sequence[str] = (),
) -> Generator[Program]:
    """Run one of our programs during the block. `sources`: folders with its packages, by default those of bench."""
    log.parent.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([*sources, *filter(None, sys.path)])
    env = {**os.environ, **(environment or {}), "PYTHONPATH": path}
    with log.open("ab") as out, subprocess.Popen(command, env=env, stdin=stdin, stdout=out, stderr=out) as process:
        program = Program(process, log, metrics_port)
        try:
            yield program
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def controller(kubeconfig: Path, log: Path, *more: str, sources: Sequence[str] = ()) -> Generator[Program]:
    """Run the controller with the options of config/manager, outside a cluster. `sources`: as for `running`."""
    metrics, probes = free_port(), free_port()
    options = ["--leader-elect", f"--metrics-bind-address=127.0.0.1:{metrics}"]
    options += [f"--health-probe-bind-address=127.0.0.1:{probes}", *more]
    command = [sys.executable, "-c", LAUNCH.format("memcached_operator.__main__"), *options]
    with running(command, log, metrics, {"KUBECONFIG": str(kubeconfig)}, sources=sources) as program:
        yield program


async def wait_until(condition: Callable[[], object], seconds: float, what: str, period: float = 0.05) -> None:
    """Poll until the condition is true. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {seconds:g} s waiting until {what}")
        await asyncio.sleep(period)
