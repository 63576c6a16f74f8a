"""The agent as a process."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Final

from support import programs
from support.ports import free_port
from support.streams import unverified

PROBES: Final = ("/livez", "/readyz")
"""The paths on the port for probes."""
READY: Final = (200, "memcached_agent_info", "/metrics")
LIVE: Final = (200, "ok", "/livez")
"""The first response of an agent that serves metrics, and of one that has no certificate for them yet."""
START: Final = 60.0
"""Seconds until the agent serves its port; enough for a busy machine."""


def environment(*, measured: bool = True) -> dict[str, str]:
    """The environment of the agent. `measured`: its coverage is measured, if that of the tests is."""
    coverage = {name: text for name, text in os.environ.items() if measured and name.startswith("COVERAGE_")}
    path = os.pathsep.join(path for path in sys.path if path)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": path, **coverage}


def command(*arguments: str, module: str = "memcached_agent") -> list[str]:
    """The command line of the agent, or of a module that runs it."""
    return [sys.executable, "-m", module, *arguments]


def finished(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the agent until it ends."""
    words = command(*arguments)
    return programs.run(words, env=environment(), timeout=START)


@dataclass
class Agent:
    """A running agent."""

    process: subprocess.Popen[str]
    port: int
    probes: int
    tls: bool = False

    def get(self, path: str = "/metrics", timeout: float = 30) -> tuple[int, str]:
        """The status and the body of a response."""
        connection = self._connection(path, timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def wait_for(self, status: int, text: str, path: str = "/healthz", seconds: float = START) -> None:
        """Wait for a response with this status and text."""
        deadline, found = time.monotonic() + seconds, (0, "")
        while time.monotonic() < deadline:
            try:
                found = self.get(path)
            except (ConnectionError, ssl.SSLError) as error:
                assert self.process.poll() is None, "the agent has ended"
                found = (0, str(error))
            if found[0] == status and text in found[1]:
                return
            time.sleep(0.02)
        raise AssertionError(f"{path} responds {found[0]} {found[1][:1000]!r}, not {status} {text!r}")

    def end(self, signum: int = signal.SIGTERM, seconds: float = 5) -> tuple[int, str]:
        """Send a signal and wait; returns the exit code and the log."""
        self.process.send_signal(signum)
        _, log = self.process.communicate(timeout=seconds)
        return self.process.returncode, log

    def _connection(self, path: str, timeout: float) -> HTTPConnection:
        if path in PROBES:
            return HTTPConnection("127.0.0.1", self.probes, timeout=timeout)
        if self.tls:
            return HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=unverified())
        return HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def wakeups(self) -> int:
        """How often the process has waited until now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (found,) = (line for line in lines if line.startswith("voluntary_ctxt_switches:"))
        return int(found.split()[1])

    def private_bytes(self) -> int:
        """Memory that no other process shares."""
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


@contextmanager
def running(
    memcached_port: int,
    *arguments: str,
    measured: bool = True,
    tls: bool = False,
    certified: bool = True,
    module: str = "memcached_agent",
) -> Generator[Agent]:
    """Run the agent during the block; it serves free ports.

    `tls`: it serves the metrics by HTTPS. `certified`: it has a certificate for that, or needs none. `module`: as
    `command`.
    """
    port, probes = free_port(), free_port()
    addresses = (
        f"--memcached=127.0.0.1:{memcached_port}",
        f"--metrics-bind-address=:{port}",
        f"--probes-bind-address=:{probes}",
    )
    words = command(*addresses, *arguments, module=module)
    with subprocess.Popen(words, env=environment(measured=measured), stderr=subprocess.PIPE, text=True) as process:
        try:
            agent = Agent(process, port, probes, tls)
            agent.wait_for(*(READY if certified else LIVE))
            yield agent
        finally:
            process.kill()
