"""Runs a second controller beside the deployed one, for the namespace of one test."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from support.kube import eventually
from support.ports import free_port

RECONCILES = r'^controller_runtime_reconcile_total\{controller="%s",result="(\w+)"\} (\S+)$'


class Controller:
    """A running controller process."""

    def __init__(self, process: "subprocess.Popen[bytes]", metrics: str, kind: str) -> None:
        self._process = process
        self._reconciles = re.compile(RECONCILES % kind, re.MULTILINE)
        self._metrics = metrics

    def reconciles(self) -> dict[str, int]:
        """The number of reconciles per result."""
        if self._process.poll() is not None:
            pytest.fail(f"the controller exited with code {self._process.returncode}")
        try:
            with urlopen(self._metrics, timeout=5) as response:  # noqa: S310 - http on loopback
                text = response.read().decode()
        except (URLError, ConnectionError):
            return {}
        return {result: int(float(count)) for result, count in self._reconciles.findall(text)}

    def wait_for_reconciles(self, times: int) -> None:
        """Wait until the controller has finished this number of reconciles."""
        eventually(lambda: sum(self.reconciles().values()) >= times, 30, f"{times} reconciles")


@contextmanager
def started(namespace: str, sync_period: int = 600, kind: str = "memcached") -> Generator[Controller]:
    """Run a controller from this working tree for one namespace, as after a restart.

    `kind`: the kind whose reconciles are counted.
    """
    port = free_port()
    command = [sys.executable, "-m", "memcached_operator", f"--watch-namespaces={namespace}"]
    command += [f"--metrics-bind-address=127.0.0.1:{port}", "--health-probe-bind-address=0"]
    command += [f"--sync-period={sync_period}", "--log-level=warning"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield Controller(process, f"http://127.0.0.1:{port}/metrics", kind)
        finally:
            process.terminate()
