"""The operator as a process, kept running as a kubelet would, and everything it said."""

import asyncio
import base64
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ROOTS = ("api", "operator", "webhooks")
INSIDE = ROOT / "tests/faults/inside"
"""A sitecustomize that does what the environment asks for."""
RESTART_PAUSE = 0.2
"""Seconds; a kubelet starts a container again at once, the first time."""
END = 5.0
"""Seconds an operator has to end after SIGTERM."""
GRACE = 15.0
"""The same, as its pod has it."""


class Operator:
    """One operator, or another program of ours. It is started again where it ends; when and how is remembered."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        sources: Path,
        log: Path,
        program: str = "memcached_operator",
    ) -> None:
        self.exits: list[int] = []
        self.began: list[float] = []
        self.log = log
        self._command = (sys.executable, "-m", program, *arguments)
        self._environment = {
            **{name: text for name, text in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            **environment,
            "PYTHONPATH": os.pathsep.join(map(str, (*(sources / root for root in ROOTS), INSIDE))),
        }
        self._process: asyncio.subprocess.Process | None = None
        self._wanted = asyncio.Event()
        self._killed = False

    def start(self) -> None:
        """Have it run."""
        self._wanted.set()

    def kill(self) -> None:
        """SIGKILL it; it is started again unless it is to stay away."""
        if self._process is not None and self._process.returncode is None:
            self._killed = True
            with suppress(ProcessLookupError):
                self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send the process that runs a signal."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def leave(self) -> None:
        """Ask it to end by SIGTERM, and wait until it has; it stays away until it is started again."""
        self._wanted.clear()
        await self.end(GRACE)

    async def away(self) -> None:
        """End it by SIGKILL until it is started again."""
        self._wanted.clear()
        self.kill()
        if self._process is not None:
            await self._process.wait()

    def text(self) -> str:
        """Everything it wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        """Of the process that runs, or ran last."""
        return self._process.pid if self._process is not None else 0

    async def keep(self) -> None:
        """Run it for ever."""
        while True:
            await self._wanted.wait()
            with self.log.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, env=self._environment, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
                )
            self.began.append(time.monotonic())
            code = await self._process.wait()
            if not self._killed:
                self.exits.append(code)
            self._killed = False
            await asyncio.sleep(RESTART_PAUSE)

    async def end(self, seconds: float = END) -> None:
        """SIGTERM, and SIGKILL for one that does not heed it."""
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


@asynccontextmanager
async def kept(operator: Operator) -> AsyncGenerator[Operator]:
    """The operator runs as long as the block, when started."""
    task = asyncio.create_task(operator.keep())
    try:
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await operator.end()


def kubeconfig(path: Path, server: str, ca: bytes) -> Path:
    """A kubeconfig for a proxy, which does not ask who one is."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": cluster}],
        "users": [{"name": "operator", "user": {"token": "of-no-matter"}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "operator"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path
