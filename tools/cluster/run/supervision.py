"""Client of a cluster's supervisor."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import ClusterError
from cluster.paths import TOOLS, State
from cluster.plan import Mode
from cluster.run import processes

ANSWER_SECONDS = 30.0
START_SECONDS = 15.0
POLL_SECONDS = 0.05
LOG_LINES = 15
READY_SECONDS = 60.0
"""Timeout for the start of a component, sufficient on a busy machine."""
NAMESPACES = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--propagation", "private"]


@dataclass(frozen=True)
class Status:
    """The state of a component; `pid` is in the supervisor's PID namespace."""

    name: str
    pid: int | None
    started: float | None
    exit_code: int | None
    requested: bool
    ready: bool

    @property
    def state(self) -> str:
        """A short description of the state."""
        if self.pid:
            return "ready" if self.ready else "not ready"
        if self.started is None:
            return "not started"
        return "stopped" if self.requested else f"ended ({self.exit_code})"


def ask(state: State, do: str, component: str = "") -> dict[str, Any]:
    """Send a request to the supervisor; raises ClusterError if it does not answer or reports an error."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_SECONDS)
            client.connect(str(state.socket))
            client.sendall(json.dumps({"do": do, "component": component}).encode() + b"\n")
            with client.makefile() as stream:
                answer: dict[str, Any] = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        raise ClusterError(f"the cluster's supervisor does not answer ({error}): run `up` or `down`") from error
    if "error" in answer:
        raise ClusterError(f"the supervisor reported an error: {answer['error']}")
    return answer


def statuses(state: State) -> list[Status]:
    """All components in the order in which they start."""
    return [Status(**each) for each in ask(state, "status")["components"]]


def status(state: State, component: str) -> Status:
    """One component."""
    return Status(**ask(state, "status", component)["components"][0])


def answering(state: State) -> bool:
    """Tell whether the supervisor answers."""
    if not state.socket.exists() or processes.supervisor(state.dir) is None:
        return False
    try:
        ask(state, "status")
    except ClusterError:
        return False
    return True


def launch(state: State, mode: Mode) -> int:
    """Start the supervisor, for a node in its own namespaces; returns its process ID in this PID namespace."""
    command = [sys.executable, "-m", processes.SUPERVISOR, str(state.dir), mode]
    if mode == "node":
        command = [*NAMESPACES, *command]
    log = state.log("supervisor")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        started = subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(TOOLS), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    deadline = time.monotonic() + START_SECONDS
    while not answering(state):
        if started.poll() is not None or time.monotonic() > deadline:
            raise ClusterError(f"the supervisor did not start; its log ({log}) ends with:\n{log_tail(log)}")
        time.sleep(POLL_SECONDS)
    found = processes.supervisor(state.dir)
    if found is None:
        raise ClusterError("the supervisor ended right after its start")
    return found


def log_tail(path: Path, lines: int = LOG_LINES) -> str:
    """The end of a log, indented; a hint if it is empty."""
    if not path.exists() or not path.stat().st_size:
        return "    (the log is empty)"
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 32_768))
        text = file.read().decode(errors="replace")
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def wait_ready(state: State, component: str, seconds: float) -> None:
    """Wait until a component is ready; raises ClusterError with the end of its log on exit or timeout."""
    deadline = time.monotonic() + seconds
    while not (now := status(state, component)).ready:
        if now.pid is None or time.monotonic() > deadline:
            reason = f"is not ready after {seconds:.0f} s" if now.pid else f"has ended ({now.exit_code})"
            log = state.log(component)
            raise ClusterError(f"{component} {reason}; its log ({log}) ends with:\n{log_tail(log)}")
        time.sleep(POLL_SECONDS)
