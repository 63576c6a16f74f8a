"""The operator as a process: it is restarted as by a kubelet, and its log and exits are recorded."""

import asyncio
import base64
import ctypes
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import yaml

from faults.background import while_running

ROOT = Path(__file__).parents[2]
ROOTS = ("api", "operator", "webhooks", "agent")
SITE_HOOKS = ROOT / "tests/faults/site_hooks"
"""Directory of a sitecustomize that reads the environment variables of the campaigns."""
RESTART_PAUSE = 0.2
"""Seconds; a kubelet restarts a container immediately the first time."""
EXIT_TIMEOUT = 5.0
"""Seconds to exit after SIGTERM."""
GRACE_PERIOD = 15.0
"""The same in a pod."""
PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""
LIBC = ctypes.CDLL(None)


class Operator:
    """The operator, or another of our programs. It is restarted when it exits; starts and exits are recorded."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        sources: Path,
        log: Path,
        program: str = "memcached_operator",
    ) -> None:
        self.exits: list[int] = []
        self.starts: list[float] = []
        self.log = log
        self.program = program
        self._command = (sys.executable, "-m", program, *arguments)
        self._environment = {
            **{name: text for name, text in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            **environment,
            "PYTHONPATH": os.pathsep.join(map(str, (*(sources / root for root in ROOTS), SITE_HOOKS))),
        }
        self._process: asyncio.subprocess.Process | None = None
        self._wanted = asyncio.Event()
        self._killed = False

    def start(self) -> None:
        """Start the process, and restart it when it exits."""
        self._wanted.set()

    def kill(self) -> None:
        """SIGKILL the process. It is restarted unless it has been stopped."""
        if self._process is not None and self._process.returncode is None:
            self._killed = True
            with suppress(ProcessLookupError):
                self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the running process."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def shut_down(self) -> None:
        """SIGTERM, and wait for the exit. The process stays down until it is started again."""
        self._wanted.clear()
        await self.terminate(GRACE_PERIOD)

    async def stop(self) -> None:
        """SIGKILL. The process stays down until it is started again."""
        self._wanted.clear()
        self.kill()
        if self._process is not None:
            await self._process.wait()

    def log_text(self) -> str:
        """The whole log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        """Process id of the process that runs, or ran last."""
        return self._process.pid if self._process is not None else 0

    async def supervise(self) -> None:
        """Run and restart the process, until cancelled."""
        while True:
            await self._wanted.wait()
            with self.log.open("ab") as log:
                # In its own session: Ctrl-C on a terminal reaches only this process, which then stops the operator.
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
            self.starts.append(time.monotonic())
            code = await self._process.wait()
            if not self._killed:
                self.exits.append(code)
                with _exits_file(self.log).open("a") as file:
                    file.write(f"{code}\n")
            self._killed = False
            await asyncio.sleep(RESTART_PAUSE)

    async def terminate(self, seconds: float = EXIT_TIMEOUT) -> None:
        """SIGTERM, then SIGKILL if the process does not exit in time."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def die_with_parent() -> None:
    """Have the kernel kill the process when this one dies. Runs between fork and exec: it must not import or log."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def recorded_exits(log: Path) -> list[int]:
    """The exit codes of the process with this log, except after a SIGKILL of the test."""
    file = _exits_file(log)
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def _exits_file(log: Path) -> Path:
    return log.with_suffix(".exits")


@asynccontextmanager
async def supervised(operator: Operator) -> AsyncGenerator[Operator]:
    """Supervise the operator during the block; `start` starts it."""
    try:
        async with while_running({f"running {operator.program}": operator.supervise()}):
            yield operator
    finally:
        await operator.terminate()


def kubeconfig(path: Path, server: str, ca: bytes) -> Path:
    """Write a kubeconfig for a proxy, which does not authenticate its client."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": cluster}],
        "users": [{"name": "operator", "user": {"token": "not-checked"}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "operator"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path
