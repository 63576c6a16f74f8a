"""Supervisor of a cluster's components: PID 1 of their namespaces in node mode.

It starts and stops components on request and reports their states; it restarts nothing. When it dies, the kernel
removes everything in its PID, mount and network namespaces. `python3 -m cluster.run.supervisor STATE_DIR MODE`.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cluster.node.isolation import isolate
from cluster.paths import State
from cluster.run.probes import Probe, ready

STOP_SECONDS = 3.0
"""Seconds from SIGTERM to SIGKILL (the API server would wait a minute for its watches)."""
POLL_SECONDS = 0.5
PR_SET_PDEATHSIG = 1

Answer = dict[str, Any]


@dataclass
class Running:
    """The state of a component that was started at least once."""

    process: subprocess.Popen[bytes]
    started: float
    stopped_on_request: bool = False

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, negative for a signal."""
        return self.process.returncode


class Supervisor:
    """Starts and stops the processes; `handle` answers one request."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.running: dict[str, Running] = {}
        self.commands: dict[str, Callable[[str], Answer]] = {
            "start": self.start,
            "stop": self.stop,
            "status": self.status,
        }

    def handle(self, request: dict[str, str]) -> Answer:
        """Answer a request such as {"do": "start", "component": "etcd"}; errors are returned as {"error": …}."""
        command = self.commands.get(request.get("do", ""))
        if not command:
            return {"error": f"unknown request {request}"}
        try:
            return command(request.get("component", ""))
        except (OSError, ValueError, KeyError) as error:
            return {"error": f"{request}: {type(error).__name__}: {error}"}

    def specs(self) -> dict[str, dict[str, Any]]:
        """The components that `up` wrote last."""
        return json.loads(self.state.components_file.read_text())

    def start(self, name: str) -> Answer:
        """Start a component unless it runs."""
        known = self.running.get(name)
        if known and known.exit_code is None:
            return {"started": False}
        spec = self.specs()[name]
        log = self.state.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            process = subprocess.Popen(
                spec["argv"], env={**os.environ, **spec["env"]}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                cwd="/", start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.running[name] = Running(process, time.time())
        return {"started": True}

    def stop(self, name: str) -> Answer:
        """End a component: SIGTERM, and SIGKILL after STOP_SECONDS."""
        known = self.running.get(name)
        if not known or known.exit_code is not None:
            return {"stopped": False}
        known.stopped_on_request = True
        known.process.terminate()
        try:
            known.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            known.process.kill()
            known.process.wait()
        return {"stopped": True}

    def status(self, name: str) -> Answer:
        """The state of one component, or of all of them in their order."""
        specs = self.specs()
        names = [name] if name else list(specs)
        return {"components": [self.describe(each, specs[each]) for each in names]}

    def describe(self, name: str, spec: dict[str, Any]) -> Answer:
        """One component's state; `ready` is probed now."""
        known = self.running.get(name)
        alive = known is not None and known.exit_code is None
        return {
            "name": name,
            "pid": known.process.pid if known and alive else None,
            "started": known.started if known else None,
            "exit_code": known.exit_code if known else None,
            "requested": known.stopped_on_request if known else False,
            "ready": alive and ready(cast("Probe", spec["probe"])),
        }

    def reap(self) -> None:
        """Reap ended processes, including those inherited as PID 1 (containerd's shims)."""
        for known in self.running.values():
            known.process.poll()
        own = {known.process.pid for known in self.running.values()}
        while os.getpid() == 1 and reap_stranger(own):
            pass

    def stop_all(self) -> None:
        """End every component, the last started first."""
        for name in reversed(list(self.running)):
            self.stop(name)


def reap_stranger(own: set[int]) -> bool:
    """Reap one ended child that is not a component; tell whether there was one."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    if not found or found.si_pid in own:
        return False
    os.waitpid(found.si_pid, 0)
    return True


def die_with_parent() -> None:
    """Have the kernel kill a component when its supervisor dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def answer(supervisor: Supervisor, connection: socket.socket) -> None:
    """Read one JSON line, write one JSON line."""
    with connection, connection.makefile("rw") as stream:
        connection.settimeout(5)
        try:
            reply = supervisor.handle(json.loads(stream.readline() or "{}"))
            stream.write(json.dumps(reply) + "\n")
            stream.flush()
        except (OSError, ValueError) as error:
            print(f"request failed: {error}", flush=True)


def serve(state: State) -> None:
    """Answer requests until SIGTERM."""
    supervisor = Supervisor(state)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    state.socket.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(state.socket))
        listener.listen(16)
        listener.settimeout(POLL_SECONDS)
        while not ended:
            with contextlib.suppress(TimeoutError):
                answer(supervisor, listener.accept()[0])
            supervisor.reap()
    supervisor.stop_all()


def main() -> None:
    """In node mode, isolate; then serve."""
    state = State(Path(sys.argv[1]))
    if sys.argv[2] == "node":
        isolate(state)
    serve(state)


if __name__ == "__main__":
    main()
